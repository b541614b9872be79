//! Requests that nobody wants any more.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
