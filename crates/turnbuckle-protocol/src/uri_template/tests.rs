mod expansion;
mod hostile;
mod matching;
mod parsing;
mod round_trip;

use super::*;

fn template(source: &str) -> UriTemplate {
    UriTemplate::parse(source).unwrap()
}
