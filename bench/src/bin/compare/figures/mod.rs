//! Every figure, in the order of the page.

mod crowds;
mod http;
mod streams;

use crate::figure::Figure;

/// Returns every figure.
pub(crate) fn all() -> Vec<Box<dyn Figure>> {
    let mut figures = Vec::new();
    figures.extend(http::figures());
    figures.extend(streams::figures());
    figures.extend(crowds::figures());
    figures
}
