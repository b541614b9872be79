//! Stands in for PostgreSQL in a program that was built without it.

use super::Database;
use crate::{
    environment::Environment,
    error::{CliError, Result},
};

pub(super) fn open(_url: &str, _environment: &Environment) -> Result<Database> {
    Err(
        CliError::could_not_run("this program was built without PostgreSQL")
            .hint("build it with: cargo install --path crates/turnbuckle-cli --features postgres"),
    )
}
