//! Functions that cannot handle extension methods.

use serde_json::Value;
use turnbuckle_server::Extension;

async fn without_result(params: Value) -> Value {
    params
}

fn main() {
    let _ = Extension::new("com.example/a").method("a/b", without_result);
}
