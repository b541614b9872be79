//! Being told what changes.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
