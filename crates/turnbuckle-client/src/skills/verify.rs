//! Whether what was read of a skill is what the server listed. Pure.

use serde_json::Value;
use turnbuckle_protocol::{
    skills::{Frontmatter, FrontmatterError, digest},
    types::{
        JsonObject,
        skills::{SkillEntry, SkillResource, SkillResources},
    },
};

/// Where what was read differs from what was listed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkillMismatch {
    /// The skill has no such file.
    #[error("`{uri}` is not among the files of the skill")]
    NotListed {
        /// The file that was asked for.
        uri: String,
    },
    /// The file has more or fewer bytes than were listed.
    #[error("`{uri}` has {found} bytes, and {listed} were listed")]
    Size {
        /// The file.
        uri: String,
        /// The bytes that the list says.
        listed: u64,
        /// The bytes that were read.
        found: u64,
    },
    /// The hash of the file is another than was listed.
    #[error("`{uri}` is not the file that was listed: its hash differs")]
    Digest {
        /// The file.
        uri: String,
    },
    /// The head of `SKILL.md` says something else than the list.
    #[error("the head of `SKILL.md` and the list differ in `{member}`")]
    Frontmatter {
        /// The member that differs.
        member: String,
    },
    /// The head of `SKILL.md` cannot be read.
    #[error("`SKILL.md` cannot be used")]
    Head(#[source] FrontmatterError),
    /// `SKILL.md` is not text.
    #[error("`SKILL.md` is not UTF-8")]
    NotText,
    /// The server sent something else than the contents of the file.
    #[error("`{uri}` was answered by something else than its contents")]
    NotTheFile {
        /// The file that was asked for.
        uri: String,
    },
}

/// Finds a file in what is listed of a skill; `None` if its files are made when they are read.
pub(super) fn listed<'a>(
    skill: &'a SkillEntry,
    uri: &str,
) -> Result<Option<&'a SkillResource>, SkillMismatch> {
    match &skill.resources {
        SkillResources::Files(files) => match files.iter().find(|file| file.uri == uri) {
            Some(file) => Ok(Some(file)),
            None => Err(SkillMismatch::NotListed {
                uri: uri.to_owned(),
            }),
        },
        _ => Ok(None),
    }
}

/// Checks the bytes of a file: as many as were listed, and with the same hash.
pub(super) fn check_file(file: &SkillResource, bytes: &[u8]) -> Result<(), SkillMismatch> {
    let uri = || file.uri.clone();
    let found = bytes.len() as u64;
    if found != file.size {
        return Err(SkillMismatch::Size {
            uri: uri(),
            listed: file.size,
            found,
        });
    }
    if digest(bytes) != file.digest {
        return Err(SkillMismatch::Digest { uri: uri() });
    }
    Ok(())
}

/// Checks that the head of a `SKILL.md` says what the list said.
pub(super) fn check_head(skill: &SkillEntry, bytes: &[u8]) -> Result<Frontmatter, SkillMismatch> {
    let text = std::str::from_utf8(bytes).map_err(|_| SkillMismatch::NotText)?;
    let head = Frontmatter::of(text).map_err(SkillMismatch::Head)?;
    match difference(&skill.frontmatter, &head.all) {
        Some(member) => Err(SkillMismatch::Frontmatter {
            member: member.to_owned(),
        }),
        None => Ok(head),
    }
}

/// The first member that is not the same in both.
fn difference<'a>(listed: &'a JsonObject, read: &'a JsonObject) -> Option<&'a str> {
    let all = listed.keys().chain(read.keys());
    let mut members = all.map(String::as_str);
    members.find(|member| match (listed.get(*member), read.get(*member)) {
        (Some(listed), Some(read)) => !is_same(listed, read, *member == "metadata"),
        _ => true,
    })
}

/// Compares two members. What is in `metadata` is for others to read, and dialects of YAML disagree about its scalars:
/// there only the names have to be the same.
fn is_same(listed: &Value, read: &Value, only_names: bool) -> bool {
    match (listed, read) {
        (Value::Object(listed), Value::Object(read)) if only_names => {
            listed.len() == read.len() && listed.keys().all(|name| read.contains_key(name))
        }
        _ => listed == read,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEA: &str = "---\nname: tea\ndescription: Brews tea\nmetadata:\n  since: 2026-07-28\n---\nBoil water.\n";

    fn skill(frontmatter: Value) -> SkillEntry {
        let file = SkillResource::new(
            "skill://tea/SKILL.md",
            digest(TEA.as_bytes()),
            TEA.len() as u64,
        );
        let Value::Object(frontmatter) = frontmatter else {
            panic!("an object");
        };
        SkillEntry::new("skill://tea/SKILL.md", frontmatter, vec![file])
    }

    #[test]
    fn a_file_is_what_was_listed_or_an_error_says_why_not() {
        let skill = skill(json!({}));
        let file = listed(&skill, "skill://tea/SKILL.md").unwrap().unwrap();
        let uri = || file.uri.clone();

        assert_eq!(check_file(file, TEA.as_bytes()), Ok(()));
        assert_eq!(
            check_file(file, TEA.replace("Boil", "Burn").as_bytes()),
            Err(SkillMismatch::Digest { uri: uri() })
        );
        assert_eq!(
            check_file(file, &TEA.as_bytes()[1..]),
            Err(SkillMismatch::Size {
                uri: uri(),
                listed: TEA.len() as u64,
                found: TEA.len() as u64 - 1
            })
        );
        assert!(matches!(
            listed(&skill, "skill://tea/other.md"),
            Err(SkillMismatch::NotListed { .. })
        ));
    }

    #[test]
    fn a_head_says_what_was_listed_or_an_error_says_where_it_differs() {
        let check = |frontmatter: Value| check_head(&skill(frontmatter), TEA.as_bytes());
        let differs = |frontmatter: Value| match check(frontmatter) {
            Err(SkillMismatch::Frontmatter { member }) => member,
            other => panic!("{other:?}"),
        };
        let tea = json!({ "name": "tea", "description": "Brews tea", "metadata": { "since": "28 July" } });
        let with = |member: &str, value: Value| {
            let mut tea = tea.clone();
            tea[member] = value;
            tea
        };

        assert_eq!(check(tea.clone()).unwrap().name, "tea");
        assert_eq!(differs(with("name", json!("coffee"))), "name");
        assert_eq!(
            differs(with("description", json!("Brews coffee"))),
            "description"
        );
        assert_eq!(differs(with("license", json!("MIT"))), "license");
        assert_eq!(differs(with("metadata", json!({ "until": 1 }))), "metadata");
        assert_eq!(
            differs(json!({ "name": "tea", "description": "Brews tea" })),
            "metadata"
        );
        assert!(matches!(
            check_head(&skill(tea.clone()), b"# Tea"),
            Err(SkillMismatch::Head(FrontmatterError::Missing))
        ));
        assert_eq!(
            check_head(&skill(tea.clone()), b"\xff"),
            Err(SkillMismatch::NotText)
        );
    }
}
