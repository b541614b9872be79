//! Log entries as a tree of sessions and calls.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use serde::Serialize;

use super::entry::{LogEntry, LogEntryType};
use crate::mcp::display::sanitize;

/// A call or session with its children.
#[derive(Debug, Serialize)]
pub(crate) struct CallNode {
    group_id: u64,
    name: String,
    class_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<f64>,
    /// The outcome, or `running`.
    outcome: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    params_text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    children: Vec<CallNode>,
    /// Number of omitted children.
    #[serde(skip_serializing_if = "is_zero")]
    hidden: usize,
}

/// Selects the visible part of the tree.
#[derive(Debug, Default)]
pub(crate) struct RenderOptions {
    /// Maximum depth; unlimited if `None`.
    pub(crate) max_depth: Option<u32>,
    /// Only entries after this id.
    pub(crate) since: u64,
    /// Groups to expand; all if `None`.
    pub(crate) expanded: Option<BTreeSet<u64>>,
}

/// The entries of a group; one of them may have been removed from the log.
#[derive(Default)]
struct CallGroup<'a> {
    enter: Option<&'a LogEntry>,
    exit: Option<&'a LogEntry>,
}

impl CallNode {
    /// Builds the trees from entries.
    pub(crate) fn forest<'a>(
        entries: impl Iterator<Item = &'a LogEntry>,
        options: &RenderOptions,
    ) -> Vec<Self> {
        let mut groups: BTreeMap<u64, CallGroup<'a>> = BTreeMap::new();
        for entry in entries.filter(|entry| entry.entry_id > options.since) {
            let group = groups.entry(entry.group_id).or_default();
            match entry.entry_type {
                LogEntryType::Enter => group.enter = Some(entry),
                LogEntryType::Exit => group.exit = Some(entry),
            }
        }
        let mut below: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        for (id, group) in &groups {
            let parent = group.either().map_or(0, |entry| entry.parent_group_id);
            // If the parent is filtered out or removed from the log, its children move to the top level.
            let parent = groups.get(&parent).map_or(0, |_| parent);
            below.entry(parent).or_default().push(*id);
        }
        let layout = TreeLayout {
            groups: &groups,
            below: &below,
            options,
        };
        layout.nodes(0, 0)
    }

    /// Formats nodes as text.
    pub(crate) fn render(nodes: &[Self]) -> String {
        let mut text = String::new();
        nodes.iter().for_each(|node| node.write(0, &mut text));
        text
    }

    fn write(&self, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        let name = sanitize(&self.name);
        let _ = write!(text, "{indent}#{} {name}", self.group_id);
        if let Some(duration) = self.duration_ms {
            let _ = write!(text, " {duration:.1} ms");
        }
        let _ = write!(text, " {}", sanitize(&self.outcome));
        if !self.class_name.is_empty() {
            let _ = write!(text, " [{}]", sanitize(&self.class_name));
        }
        if !self.params_text.is_empty() {
            let _ = write!(text, " {}", sanitize(&self.params_text));
        }
        text.push('\n');
        self.children
            .iter()
            .for_each(|child| child.write(depth + 1, text));
        if self.hidden > 0 {
            let _ = writeln!(text, "{indent}  … {} not shown", self.hidden);
        }
    }
}

struct TreeLayout<'a> {
    groups: &'a BTreeMap<u64, CallGroup<'a>>,
    below: &'a BTreeMap<u64, Vec<u64>>,
    options: &'a RenderOptions,
}

impl TreeLayout<'_> {
    /// Returns the children of a group. The recursion is bounded by the number of open sessions.
    fn nodes(&self, parent: u64, depth: u32) -> Vec<CallNode> {
        let ids = self.below.get(&parent).into_iter().flatten();
        ids.filter_map(|id| self.node(*id, depth)).collect()
    }

    fn node(&self, id: u64, depth: u32) -> Option<CallNode> {
        let group = self.groups.get(&id)?;
        let entry = group.either()?;
        let is_deep = self.options.max_depth.is_some_and(|most| depth >= most);
        let expanded = self.options.expanded.as_ref();
        let is_open = !is_deep && expanded.is_none_or(|open| open.contains(&id));
        let below = self.below.get(&id).map_or(0, Vec::len);
        Some(CallNode {
            group_id: id,
            name: entry.name(),
            class_name: entry.class_name.clone(),
            duration_ms: group.exit.and_then(|exit| exit.duration_ms),
            outcome: match group.exit {
                Some(exit) => exit.message.clone(),
                None => "running".to_owned(),
            },
            params_text: group
                .enter
                .map_or_else(String::new, |enter| enter.params_text.clone()),
            children: if is_open {
                self.nodes(id, depth + 1)
            } else {
                Vec::new()
            },
            hidden: if is_open { 0 } else { below },
        })
    }
}

impl<'a> CallGroup<'a> {
    fn either(&self) -> Option<&'a LogEntry> {
        self.enter.or(self.exit)
    }
}

impl LogEntry {
    /// Returns the name with its area, such as `tools status`.
    pub(crate) fn name(&self) -> String {
        match self.package_path.as_str() {
            "" => self.function_name.clone(),
            package => format!("{package} {}", self.function_name),
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}
