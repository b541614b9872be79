//! Lists in pages.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
