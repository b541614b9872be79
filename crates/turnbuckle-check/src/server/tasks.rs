//! Tasks, in both designs.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
