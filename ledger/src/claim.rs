//! How a running test says which requirements it proves.
//!
//! With the environment variable `TURNBUCKLE_CLAIMS` set to a folder, each claim becomes a line
//! `id <tab> binary <tab> test` in a file of its process there. Without it a claim only checks its id.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::{env, process, thread};

use crate::report::TestName;
use crate::table;

/// Records that the running test proves a requirement; [`req!`](crate::req) is the short way to say it.
///
/// # Panics
///
/// If there is no such requirement, or if the claim cannot be written.
#[track_caller]
pub fn record(id: &str) {
    assert!(
        table::find(id).is_some(),
        "`{id}` is not in spec/requirements.csv"
    );
    if let Some(folder) = env::var_os("TURNBUCKLE_CLAIMS") {
        append(Path::new(&folder), id, &running_test())
            .expect("the folder of claims can be written to");
    }
}

/// The tests that claim each requirement.
pub type Claims = HashMap<String, Vec<TestName>>;

/// Reads every claim that was recorded in a folder; a folder that does not exist holds none.
///
/// # Errors
///
/// If the folder or a file in it cannot be read.
pub fn read(folder: &Path) -> io::Result<Claims> {
    let mut claims = Claims::new();
    if !folder.exists() {
        return Ok(claims);
    }
    for entry in fs::read_dir(folder)? {
        for line in fs::read_to_string(entry?.path())?.lines() {
            if let [id, binary, test] = line.split('\t').collect::<Vec<_>>()[..] {
                claims
                    .entry(id.to_owned())
                    .or_default()
                    .push(TestName::new(binary, test));
            }
        }
    }
    Ok(claims)
}

fn append(folder: &Path, id: &str, test: &TestName) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join(format!("{}.tsv", process::id()));
    let line = format!("{id}\t{}\t{}\n", test.binary, test.test);
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?
        .write_all(line.as_bytes())
}

/// Names the test as nextest does; under another runner only for a human to read.
fn running_test() -> TestName {
    let binary = env::var("NEXTEST_BINARY_ID").unwrap_or_else(|_| executable());
    let test = env::var("NEXTEST_TEST_NAME")
        .unwrap_or_else(|_| thread::current().name().unwrap_or("unnamed").to_owned());
    TestName { binary, test }
}

fn executable() -> String {
    let path = env::current_exe().unwrap_or_default();
    path.file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "`base.jsonrpc.confrom` is not in spec/requirements.csv")]
    fn a_misspelt_claim_fails_its_test() {
        crate::req!("base.jsonrpc.confrom");
    }

    #[test]
    fn claims_are_read_as_they_were_written() {
        let folder = env::temp_dir().join(format!("turnbuckle-claims-{}", process::id()));
        let first = TestName::new("a-crate::it", "module::one");
        let second = TestName::new("b-crate", "two");

        append(&folder, "base.jsonrpc.conform", &first).unwrap();
        append(&folder, "base.jsonrpc.conform", &second).unwrap();
        let claims = read(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();

        assert_eq!(claims["base.jsonrpc.conform"], [first, second]);
    }

    #[test]
    fn a_missing_folder_holds_no_claims() {
        assert!(read(Path::new("no/such/folder")).unwrap().is_empty());
    }
}
