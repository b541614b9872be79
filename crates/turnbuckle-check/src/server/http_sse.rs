//! HTTP+SSE of 2024-11-05.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
