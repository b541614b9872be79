//! Types that only the compiler can judge.

use turnbuckle::{prompt, tool};

#[tool]
async fn forecast(city: String) -> String {
    city
}

#[prompt]
async fn review() -> Option<String> {
    None
}

fn main() {}
