//! Records which requirements a running test proves, and in which revisions.
//!
//! With the environment variable `TURNBUCKLE_CLAIMS` set to a folder, each claim becomes a line
//! `id <tab> binary <tab> test [<tab> revisions]` in a file of its process there, and each revision that the test used a line
//! `@date <tab> binary <tab> test`. Without the variable a claim only checks its id.
//!
//! A claim counts in the revisions that it names itself, or else in those that its test used. nextest runs each test in its
//! own process, so the revisions of a process are those of its test.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    env,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
    process,
    sync::Mutex,
    thread,
};

use crate::{report::TestName, table};

/// Records that the running test proves a requirement; [`req!`](crate::req) is the short form.
///
/// # Panics
///
/// If there is no such requirement, or if the claim cannot be written.
#[track_caller]
pub fn record(id: &str) {
    require(id);
    write(id, None);
}

/// Records that the running test proves a requirement in these revisions only.
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

/// Records that the running test used a revision: it exchanged a handshake or a request in it.
///
/// Called by test helpers that open sessions, and by [`saw_message`]. A revision that no requirement names is not recorded.
///
/// # Panics
///
/// If the record cannot be written.
pub fn ran_in(revision: &str) {
    static RECORDED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if !table::DATES.contains(&revision) {
        return;
    }
    let is_new = RECORDED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .insert(revision.to_owned());
    if is_new {
        write(&format!("@{revision}"), None);
    }
}

/// Records the revision that a message on the wire is evidence of, if any.
///
/// A result of `initialize` is evidence of its legacy revision. A result of `server/discover` that names one stateless revision, or
/// a request with one in `_meta`, is evidence of that revision. A version that a client proposes in `initialize` or tries with
/// `server/discover` is not evidence.
pub fn saw_message(text: &str) {
    if let Some(revision) = message_revision(text) {
        ran_in(revision);
    }
}

/// Returns the revision that a message is evidence of.
fn message_revision(text: &str) -> Option<&str> {
    let date_after = |member: &str| {
        let (_, rest) = text.split_once(member)?;
        rest.trim_start().strip_prefix('"')?.get(..10)
    };
    if text.contains("\"result\"") {
        if text.contains("\"supportedVersions\"") {
            return supported_stateless(text);
        }
        let date = date_after("\"protocolVersion\":")?;
        return (text.contains("\"serverInfo\"") && !table::is_stateless(date)).then_some(date);
    }
    let date = date_after("\"io.modelcontextprotocol/protocolVersion\":")?;
    let is_attempt = text.contains("\"server/discover\"");
    (table::is_stateless(date) && !is_attempt).then_some(date)
}

/// Returns the stateless revision that a result of `server/discover` names, if it is the only one: the result does not
/// contain the revision of its request.
fn supported_stateless(text: &str) -> Option<&'static str> {
    let dates = table::DATES.into_iter();
    let mut supported = dates.filter(|date| table::is_stateless(date) && text.contains(date));
    supported.next().filter(|_| supported.next().is_none())
}

/// The tests that claim each requirement, and the revisions that each test used.
#[derive(Debug, Default)]
pub struct Claims {
    by_id: HashMap<String, Vec<Claim>>,
    tested_revisions: HashMap<TestName, BTreeSet<String>>,
}

/// The claim of one test for one requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The test.
    pub test: TestName,
    /// The revisions that the claim names itself; `None` for those that the test used.
    pub revisions: Option<Vec<String>>,
}

impl Claims {
    /// Adds a claim for the revisions that the test uses.
    pub fn add(&mut self, id: &str, test: &TestName) {
        self.insert(id, test, None);
    }

    /// Adds a claim for these revisions only.
    pub fn add_in(&mut self, id: &str, test: &TestName, revisions: &[&str]) {
        let revisions = revisions.iter().map(|&date| date.to_owned()).collect();
        self.insert(id, test, Some(revisions));
    }

    /// Adds a revision that a test used.
    pub fn add_revision(&mut self, test: &TestName, revision: &str) {
        let tested_revisions = self.tested_revisions.entry(test.clone()).or_default();
        tested_revisions.insert(revision.to_owned());
    }

    /// Returns the claims of a requirement.
    pub fn for_requirement(&self, id: &str) -> &[Claim] {
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
                let tested_revisions = self.tested_revisions.get(&claim.test);
                tested_revisions.is_some_and(|tested_revisions| tested_revisions.contains(revision))
            }
        }
    }

    /// Returns the tests of each requirement.
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
                    Some(revision) => self.add_revision(&test, revision),
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

/// Reads every claim that was recorded in a folder; a folder that does not exist counts as empty.
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

/// Writes a line about the running test if `TURNBUCKLE_CLAIMS` is set.
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

/// Returns the name of the test as nextest reports it; other runners give an approximate name.
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
