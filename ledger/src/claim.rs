//! How a running test says which requirements it proves, and in which revisions it did so.
//!
//! With the environment variable `TURNBUCKLE_CLAIMS` set to a folder, each claim becomes a line
//! `id <tab> binary <tab> test [<tab> revisions]` in a file of its process there, and each revision that the test spoke a line
//! `@date <tab> binary <tab> test`. Without the variable a claim only checks its id.
//!
//! A claim counts in the revisions that it names itself, or else in those that its test spoke. nextest runs each test in a
//! process of its own, so what a process spoke is what its test spoke.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
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
    require(id);
    write(id, None);
}

/// Records that the running test proves a requirement in these revisions, whatever else it speaks.
///
/// # Panics
///
/// If there is no such requirement, if it does not name one of the revisions, or if the claim cannot be written.
#[track_caller]
pub fn record_in(id: &str, revisions: &[&str]) {
    let row = require(id);
    for revision in revisions {
        assert!(
            row.revisions.contains(revision),
            "`{id}` does not name {revision}"
        );
    }
    write(id, Some(&revisions.join(" ")));
}

/// Records that the running test spoke a revision: it exchanged a handshake or a request in it.
///
/// For the helpers of tests that open sessions; [`saw_message`] calls it for what it finds on the wire. A revision that the
/// table does not know proves nothing and is not recorded.
///
/// # Panics
///
/// If it cannot be written.
pub fn ran_in(revision: &str) {
    static SPOKEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if !table::DATES.contains(&revision) {
        return;
    }
    let is_new = SPOKEN
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .insert(revision.to_owned());
    if is_new {
        write(&format!("@{revision}"), None);
    }
}

/// Records the revision that a message on the wire is evidence of, if any.
///
/// A result of `initialize` settles one of the revisions with a handshake. A result of `server/discover` that supports the newest
/// revision, or a request whose `_meta` names it, is of that one. What a client proposes in `initialize` or tries with
/// `server/discover` is evidence of nothing.
pub fn saw_message(text: &str) {
    if let Some(revision) = spoken_revision(text) {
        ran_in(revision);
    }
}

/// Returns the revision that a message is evidence of.
fn spoken_revision(text: &str) -> Option<&str> {
    let date_after = |member: &str| {
        let (_, rest) = text.split_once(member)?;
        rest.trim_start().strip_prefix('"')?.get(..10)
    };
    if text.contains("\"result\"") {
        if text.contains("\"supportedVersions\"") {
            return text.contains(table::MODERN).then_some(table::MODERN);
        }
        let date = date_after("\"protocolVersion\":")?;
        return (text.contains("\"serverInfo\"") && date != table::MODERN).then_some(date);
    }
    let date = date_after("\"io.modelcontextprotocol/protocolVersion\":")?;
    let is_attempt = text.contains("\"server/discover\"");
    (date == table::MODERN && !is_attempt).then_some(date)
}

/// The tests that claim each requirement, and the revisions that each test spoke.
#[derive(Debug, Default)]
pub struct Claims {
    by_id: HashMap<String, Vec<Claim>>,
    spoken: HashMap<TestName, BTreeSet<String>>,
}

/// What one test says about one requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The test.
    pub test: TestName,
    /// The revisions that the claim names itself; `None` for those that the test spoke.
    pub revisions: Option<Vec<String>>,
}

impl Claims {
    /// Adds a claim for the revisions that the test speaks.
    pub fn add(&mut self, id: &str, test: &TestName) {
        self.insert(id, test, None);
    }

    /// Adds a claim for these revisions only.
    pub fn add_in(&mut self, id: &str, test: &TestName, revisions: &[&str]) {
        let revisions = revisions.iter().map(|&date| date.to_owned()).collect();
        self.insert(id, test, Some(revisions));
    }

    /// Adds that a test spoke a revision.
    pub fn add_spoken(&mut self, test: &TestName, revision: &str) {
        let spoken = self.spoken.entry(test.clone()).or_default();
        spoken.insert(revision.to_owned());
    }

    /// Returns the claims of a requirement.
    pub fn of(&self, id: &str) -> &[Claim] {
        self.by_id.get(id).map_or(&[], Vec::as_slice)
    }

    /// Returns every requirement that is claimed, with its claims.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Claim)> {
        let all = self.by_id.iter();
        all.flat_map(|(id, claims)| claims.iter().map(move |claim| (id.as_str(), claim)))
    }

    /// Returns whether a claim was made in a revision.
    pub fn is_made_in(&self, claim: &Claim, revision: &str) -> bool {
        match &claim.revisions {
            Some(named) => named.iter().any(|date| date == revision),
            None => {
                let spoken = self.spoken.get(&claim.test);
                spoken.is_some_and(|spoken| spoken.contains(revision))
            }
        }
    }

    /// Returns the tests of each requirement by name, for those who run them again.
    pub fn tests(&self) -> BTreeMap<&str, BTreeSet<&TestName>> {
        let mut tests = BTreeMap::<_, BTreeSet<_>>::new();
        for (id, claim) in self.iter() {
            tests.entry(id).or_default().insert(&claim.test);
        }
        tests
    }

    fn insert(&mut self, id: &str, test: &TestName, revisions: Option<Vec<String>>) {
        let claim = Claim {
            test: test.clone(),
            revisions,
        };
        self.by_id.entry(id.to_owned()).or_default().push(claim);
    }

    fn read_line(&mut self, line: &str) {
        match line.split('\t').collect::<Vec<_>>()[..] {
            [first, binary, test] => {
                let test = TestName::new(binary, test);
                match first.strip_prefix('@') {
                    Some(revision) => self.add_spoken(&test, revision),
                    None => self.add(first, &test),
                }
            }
            [id, binary, test, revisions] => {
                let revisions: Vec<_> = revisions.split(' ').collect();
                self.add_in(id, &TestName::new(binary, test), &revisions);
            }
            _ => {}
        }
    }
}

/// Reads every claim that was recorded in a folder; a folder that does not exist holds none.
///
/// # Errors
///
/// If the folder or a file in it cannot be read.
pub fn read(folder: &Path) -> io::Result<Claims> {
    let mut claims = Claims::default();
    if !folder.exists() {
        return Ok(claims);
    }
    for entry in fs::read_dir(folder)? {
        for line in fs::read_to_string(entry?.path())?.lines() {
            claims.read_line(line);
        }
    }
    Ok(claims)
}

#[track_caller]
fn require(id: &str) -> &'static table::Requirement {
    table::find(id).unwrap_or_else(|| panic!("`{id}` is not in spec/requirements.csv"))
}

/// Writes a line about the running test, if somebody collects them.
fn write(first: &str, revisions: Option<&str>) {
    if let Some(folder) = env::var_os("TURNBUCKLE_CLAIMS") {
        let test = running_test();
        let mut fields = vec![first, &test.binary, &test.test];
        fields.extend(revisions);
        append(Path::new(&folder), &fields).expect("the folder of claims can be written to");
    }
}

fn append(folder: &Path, fields: &[&str]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let file = folder.join(format!("{}.tsv", process::id()));
    let line = format!("{}\n", fields.join("\t"));
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
mod tests;
