//! What a server asks its client: the user, the model, the roots.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
