//! The shape of every message.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
