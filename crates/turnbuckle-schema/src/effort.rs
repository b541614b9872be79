//! How much work a schema can make.
//!
//! Schemas come from strangers, and values too. Alternatives within alternatives, references to two references each,
//! schemas that contain themselves: a few lines can keep a validator busy for ever, or exhaust its stack. What a schema
//! can do at worst is counted before it is used.

use serde_json::Value;

use crate::{
    SchemaError,
    graph::{Graph, Node, Step},
};

/// Where references lead by names, there may be so many.
const NAMED_REFERENCES: usize = 16;
/// So many schemas, one inside the other, may be at work at once: each takes room on the stack.
const LEVELS: u32 = 2048;
/// No message is deeper than this.
const MESSAGE_DEPTH: u32 = 128;
/// Where at most so many schemas apply to one part of a value, nobody needs to count steps.
const HARMLESS: u64 = 32;
/// Explaining may try so many schemas.
const EXPLAINED: u64 = 1 << 17;
/// Values with more parts than this get one mistake named.
const PARTS: usize = 4096;

/// What one schema costs at worst.
pub(super) struct Effort {
    /// How many schemas can be at work at one place, one inside the other.
    levels: u32,
    /// How many schemas apply to one and the same value, not counting those for its parts.
    here: u64,
    /// How many of those for parts can apply to the same part.
    fan: u64,
    /// How many schemas apply to any part of a value, if that has a limit however deep the value is.
    ways: Option<u64>,
    /// Whether there are alternatives, whose mistakes are all collected.
    alternatives: bool,
}

impl Effort {
    /// Counts what a schema can do, or refuses it.
    pub(super) fn of(graph: &Graph<'_>) -> Result<Self, SchemaError> {
        let Some(inner_first) = graph.order(|step| step == Step::Stay) else {
            return Err(SchemaError::TooMuch("leads back to itself"));
        };
        let mut effort = Self::at_one_place(graph, &inner_first);
        if graph.by_name > 0 {
            effort.expect_anything(graph)?;
        }
        if effort.levels > LEVELS {
            return Err(SchemaError::TooMuch("is too deep"));
        }
        Ok(effort)
    }

    /// Whether steps have to be counted while a value is checked.
    pub(super) fn can_explode(&self) -> bool {
        self.ways.is_none_or(|ways| ways > HARMLESS)
    }

    /// Whether the stack suffices for a value.
    pub(super) fn has_room_for(&self, value: &Value) -> bool {
        self.levels <= LEVELS / MESSAGE_DEPTH
            || depth(value, &mut { usize::MAX })
                .is_some_and(|depth| self.levels.saturating_mul(depth + 1) <= LEVELS)
    }

    /// Whether all mistakes in a value may be collected.
    pub(super) fn allows_all(&self, value: &Value) -> bool {
        let mut left = PARTS;
        let Some(depth) = depth(value, &mut left) else {
            return false;
        };
        let by_depth = self.here.saturating_mul(self.fan.saturating_pow(depth));
        let ways = self.ways.map_or(by_depth, |ways| ways.min(by_depth));
        ways.saturating_mul((PARTS - left) as u64) <= EXPLAINED
    }

    /// Whether the first mistake in a value may be looked for, however large the value is.
    pub(super) fn allows_first(&self) -> bool {
        let goes_straight = self.fan == 1 && self.here <= HARMLESS;
        !self.alternatives && (goes_straight || !self.can_explode())
    }

    /// Follows what applies to the same value, which ends, as no schema leads back to itself.
    fn at_one_place(graph: &Graph<'_>, inner_first: &[usize]) -> Self {
        let mut all = Self {
            levels: 1,
            here: 1,
            fan: 1,
            ways: ways(graph),
            alternatives: graph.alternatives,
        };
        let mut counted = vec![(0_u32, 0_u64, 0_u64); graph.nodes.len()];
        for &at in inner_first {
            let node = &graph.nodes[at];
            let (mut levels, mut here, mut fan) = (1, 1, u64::from(node.has(Step::Part)));
            for edge in &node.edges {
                let inner = counted[edge.to];
                match edge.step {
                    Step::Stay => {
                        levels = levels.max(inner.0.saturating_add(1));
                        here = inner.1.saturating_add(here);
                        fan = inner.2.saturating_add(fan);
                    }
                    Step::AlsoPart => fan = fan.saturating_add(1),
                    Step::Part => {}
                }
            }
            (here, fan) = (node.again(here), node.again(fan));
            counted[at] = (levels, here, fan);
            all.levels = all.levels.max(levels);
            all.here = all.here.max(here);
            all.fan = all.fan.max(fan);
        }
        all
    }

    /// Where references lead is known only to the validator: each could lead to all others.
    fn expect_anything(&mut self, graph: &Graph<'_>) -> Result<(), SchemaError> {
        if graph.references > NAMED_REFERENCES {
            return Err(SchemaError::TooMuch("has too many references by name"));
        }
        for _ in 0..graph.references {
            self.here = self.here.saturating_mul(2);
            self.fan = self.fan.saturating_mul(2);
        }
        let references = u32::try_from(graph.references).unwrap_or(u32::MAX);
        self.levels = self.levels.saturating_mul(references.saturating_add(1));
        self.ways = None;
        Ok(())
    }
}

/// How many schemas apply to any part of a value; none if a schema contains itself, for then that grows with the value.
fn ways(graph: &Graph<'_>) -> Option<u64> {
    let mut ways = vec![0_u64; graph.nodes.len()];
    for at in graph.order(|_| true)? {
        let node = &graph.nodes[at];
        let (mut sum, mut most) = (1_u64, 0);
        for edge in &node.edges {
            match edge.step {
                Step::Stay | Step::AlsoPart => sum = sum.saturating_add(ways[edge.to]),
                Step::Part => most = ways[edge.to].max(most),
            }
        }
        ways[at] = node.again(sum.saturating_add(most));
    }
    ways.first().copied()
}

impl Node {
    fn has(&self, step: Step) -> bool {
        self.edges.iter().any(|edge| edge.step == step)
    }

    /// Once to check, once to find out what was looked at, and once more for what was looked at in there.
    fn again(&self, count: u64) -> u64 {
        if self.looks_again {
            count.saturating_mul(3)
        } else {
            count
        }
    }
}

/// How deep a value is, unless it has more than `left` parts.
fn depth(value: &Value, left: &mut usize) -> Option<u32> {
    *left = left.checked_sub(1)?;
    let mut deepest = 0;
    match value {
        Value::Array(items) => {
            for item in items {
                deepest = deepest.max(depth(item, left)? + 1);
            }
        }
        Value::Object(members) => {
            for member in members.values() {
                deepest = deepest.max(depth(member, left)? + 1);
            }
        }
        _ => {}
    }
    Some(deepest)
}
