//! Whom a server on HTTP lets in: `Origin` and `Host`.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
