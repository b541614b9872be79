//! Tests of the server as the fuzz targets build it: without its features.

// The instrumented code needs the runtime of libFuzzer.
use libfuzzer_sys as _;

#[path = "../../crates/turnbuckle-server/tests/it/tools/no_validation.rs"]
mod no_validation;
#[path = "../../crates/turnbuckle-server/tests/it/tools/own_validator.rs"]
mod own_validator;
