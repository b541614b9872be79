//! Log messages.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
