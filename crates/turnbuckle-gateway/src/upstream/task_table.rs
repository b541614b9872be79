//! The tasks of a connection to a legacy server, by the id that the server uses.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

use crate::lock;

/// Maximum number of tasks of a connection. The oldest are forgotten.
const MAX_TASKS: usize = 1_024;

/// What is known about tasks.
pub(super) struct TaskTable<T>(Mutex<TaskEntries<T>>);

struct TaskEntries<T> {
    by_id: HashMap<String, T>,
    /// Oldest first.
    ids: VecDeque<String>,
}

impl<T> Default for TaskTable<T> {
    fn default() -> Self {
        Self(Mutex::new(TaskEntries {
            by_id: HashMap::new(),
            ids: VecDeque::new(),
        }))
    }
}

impl<T: Clone> TaskTable<T> {
    pub(super) fn insert(&self, id: String, task: T) {
        let mut entries = lock(&self.0);
        if entries.by_id.insert(id.clone(), task).is_some() {
            return;
        }
        entries.ids.push_back(id);
        if entries.ids.len() > MAX_TASKS
            && let Some(oldest) = entries.ids.pop_front()
        {
            entries.by_id.remove(&oldest);
        }
    }

    pub(super) fn get(&self, id: &str) -> Option<T> {
        lock(&self.0).by_id.get(id).cloned()
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        lock(&self.0).by_id.contains_key(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_tasks_are_forgotten() {
        let table = TaskTable::default();
        for number in 0..=MAX_TASKS {
            table.insert(number.to_string(), number);
        }
        table.insert(MAX_TASKS.to_string(), 0);
        assert!(!table.contains("0"));
        assert_eq!(table.get("1"), Some(1));
        assert_eq!(table.get(&MAX_TASKS.to_string()), Some(0));
        assert_eq!(lock(&table.0).by_id.len(), MAX_TASKS);
    }
}
