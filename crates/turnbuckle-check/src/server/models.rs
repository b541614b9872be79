//! What makes a server better for models; advice, not rules.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
