//! Questions that somebody is about to answer.

use super::Task;

/// Keeps others from asking the same questions. If this is dropped before they were answered, whoever waits for the task
/// next asks them again: without an answer it would never end.
pub(super) struct Taken<'t> {
    task: &'t Task,
    keys: Vec<String>,
}

impl<'t> Taken<'t> {
    pub(super) fn new(task: &'t Task, keys: impl Iterator<Item = String>) -> Self {
        let keys: Vec<_> = keys.collect();
        task.state().asked.extend(keys.iter().cloned());
        Self { task, keys }
    }

    /// Says that the server has the answers.
    pub(super) fn answered(mut self) {
        self.keys.clear();
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let keys = std::mem::take(&mut self.keys);
        if keys.is_empty() {
            return;
        }
        let mut state = self.task.state();
        for key in keys {
            state.asked.remove(&key);
        }
    }
}
