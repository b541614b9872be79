//! Every figure, in the order of the page.

mod client;
mod crowds;
mod gateway;
mod growth;
mod http;
mod instructions;
mod start;
mod stdio;
mod stdio_gateway;
mod streams;
mod weight;

pub(crate) use self::weight::builds;
use super::figure::Figure;

/// Returns every figure, except for [`builds`].
pub(crate) fn all() -> Vec<Box<dyn Figure>> {
    let mut figures = Vec::new();
    figures.extend(instructions::figures());
    figures.extend(http::figures());
    figures.extend(streams::figures());
    figures.extend(growth::figures());
    figures.extend(crowds::figures());
    figures.extend(client::figures());
    figures.extend(stdio::figures());
    figures.extend(gateway::figures());
    figures.extend(stdio_gateway::figures());
    figures.extend(start::figures());
    figures.extend(weight::figures());
    figures
}
