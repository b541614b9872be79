//! What a hostile or clumsy client may send.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
