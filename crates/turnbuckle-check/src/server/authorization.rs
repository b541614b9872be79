//! What a server says to those without a token.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
