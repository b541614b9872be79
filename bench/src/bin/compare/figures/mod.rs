//! Every figure, in the order of the page.

mod http;
mod start;
mod stdio;

use crate::figure::Figure;

/// Returns every figure.
pub(crate) fn all() -> Vec<Box<dyn Figure>> {
    let mut figures = Vec::new();
    figures.extend(http::figures());
    figures.extend(stdio::figures());
    figures.extend(start::figures());
    figures
}
