//! Old and new clients at one server.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
