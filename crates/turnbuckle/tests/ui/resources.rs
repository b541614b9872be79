//! Functions that cannot be resources, and URIs that do not match their functions.
#![allow(unused)]

use turnbuckle::{RequestError, resource};

#[resource]
async fn nowhere() -> Result<String, RequestError> {
    Ok(String::new())
}

const URI: &str = "notes://all";

#[resource(uri = URI)]
async fn constant() -> Result<String, RequestError> {
    Ok(String::new())
}

#[resource(uri = "notes://{day")]
async fn unclosed(day: String) -> Result<String, RequestError> {
    Ok(day)
}

#[resource(uri = "notes://{}")]
async fn unnamed(day: String) -> Result<String, RequestError> {
    Ok(day)
}

#[resource(uri = "notes://all")]
async fn fixed(day: String) -> Result<String, RequestError> {
    Ok(day)
}

#[resource(uri = "notes://{day}/{hour}")]
async fn mismatched(day: String, minute: String) -> Result<String, RequestError> {
    Ok(day)
}

#[resource(uri = "notes://all{?page}")]
async fn required(page: String) -> Result<String, RequestError> {
    Ok(page)
}

#[resource(uri = "notes://{number}")]
async fn number(number: u32) -> Result<String, RequestError> {
    Ok(String::new())
}

#[resource(uri = "notes://{number}")]
async fn described(#[schemars(length(max = 4))] number: String) -> Result<String, RequestError> {
    Ok(number)
}

#[resource(uri = "notes://all")]
fn not_async() -> Result<String, RequestError> {
    Ok(String::new())
}

fn main() {}
