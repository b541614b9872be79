//! Streams of events, and taking them up again.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
