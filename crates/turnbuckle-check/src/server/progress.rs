//! Progress of long requests.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
