//! How long an answer is good for.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
