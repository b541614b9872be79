//! What is right about clients, a file for each area.

mod asked;
mod authorization;
mod base;
mod calls;
mod eras;
mod headers;
mod http;
mod lifecycle;
mod lines;
mod meta;
mod pages;
mod rounds;
mod sessions;
mod shapes;
mod streams;
#[cfg(test)]
mod tests;

use crate::rule::Rule;

/// All of them, area by area.
pub(crate) const AREAS: &[&[Rule]] = &[
    base::RULES,
    shapes::RULES,
    meta::RULES,
    lifecycle::RULES,
    eras::RULES,
    lines::RULES,
    http::RULES,
    headers::RULES,
    sessions::RULES,
    streams::RULES,
    asked::RULES,
    rounds::RULES,
    pages::RULES,
    calls::RULES,
    authorization::RULES,
];
