//! Every figure, in the order of the page.

mod http;
mod start;
mod stdio;
mod weight;

pub(crate) use self::weight::builds;
use crate::figure::Figure;

/// Returns every figure, except for [`builds`].
pub(crate) fn all() -> Vec<Box<dyn Figure>> {
    let mut figures = Vec::new();
    figures.extend(http::figures());
    figures.extend(stdio::figures());
    figures.extend(start::figures());
    figures.extend(weight::figures());
    figures
}
