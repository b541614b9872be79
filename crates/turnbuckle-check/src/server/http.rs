//! Methods, status codes and headers of HTTP.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
