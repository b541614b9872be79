//! How a conversation begins.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
