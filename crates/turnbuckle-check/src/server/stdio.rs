//! Lines on standard streams, and how a process ends.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
