//! What is right about clients, a file for each area.

mod base;

use crate::rule::Rule;

/// All of them, area by area.
pub(crate) const AREAS: &[&[Rule]] = &[base::RULES];
