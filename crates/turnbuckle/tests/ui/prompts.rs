//! Functions that cannot be prompts.
#![allow(unused)]

use turnbuckle::{RequestError, prompt};

#[prompt]
async fn number(count: u8, maybe: Option<f64>) -> Result<String, RequestError> {
    Ok(String::new())
}

#[prompt]
fn not_async() -> Result<String, RequestError> {
    Ok(String::new())
}

#[prompt(read_only)]
async fn hinted() -> Result<String, RequestError> {
    Ok(String::new())
}

#[prompt]
async fn returns_nothing(file: String) {}

fn main() {}
