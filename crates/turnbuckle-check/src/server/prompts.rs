//! Prompts.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
