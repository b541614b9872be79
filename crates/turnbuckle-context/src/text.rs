//! Text processing that searches in memory and in repositories share: tokens, identifiers and the fusion of rankings.

pub mod identifiers;
pub mod rank_fusion;
pub mod tokenize;

#[cfg(test)]
mod tests;
