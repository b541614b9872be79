//! The front matter of a `SKILL.md`.

use serde_json::{Map, Value};

use super::yaml;

/// The maximum length of front matter, in bytes.
const MAX_FRONTMATTER_BYTES: usize = 64 * 1024;
/// The prefix of `metadata` keys that are reserved for extensions of the protocol.
const RESERVED: &str = "io.modelcontextprotocol/";

/// The validated front matter of a `SKILL.md`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Frontmatter {
    /// All members, as `skills/list` repeats them.
    pub all: Map<String, Value>,
    /// The name of the skill.
    pub name: String,
    /// A description of the situations to use it in.
    pub description: String,
}

/// The reason why front matter is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FrontmatterError {
    /// The file lacks front matter.
    #[error("`SKILL.md` must start with YAML front matter between two lines `---`")]
    Missing,
    /// The front matter cannot be parsed.
    #[error("the front matter of `SKILL.md`: {0}")]
    Unreadable(String),
    /// The name is missing or invalid.
    #[error(
        "`name` must be 1 to 64 lower-case letters, digits and single hyphens, and must not start or end with a hyphen"
    )]
    Name,
    /// The description is missing.
    #[error("`description` must say when to use the skill")]
    Description,
    /// A `metadata` key is reserved by the protocol.
    #[error("the prefix of the `metadata` key `{0}` is reserved")]
    Reserved(String),
}

impl Frontmatter {
    /// Parses the front matter of a file.
    pub fn parse(markdown: &str) -> Result<Self, FrontmatterError> {
        let head = head(markdown).ok_or(FrontmatterError::Missing)?;
        if head.len() > MAX_FRONTMATTER_BYTES {
            let error = format!("it has more than {MAX_FRONTMATTER_BYTES} bytes");
            return Err(FrontmatterError::Unreadable(error));
        }
        match yaml::read(head).map_err(FrontmatterError::Unreadable)? {
            Value::Object(all) => Self::check(all),
            _ => Err(FrontmatterError::Unreadable(
                "it is not a mapping".to_owned(),
            )),
        }
    }

    fn check(all: Map<String, Value>) -> Result<Self, FrontmatterError> {
        let text = |key: &str| all.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text("name").filter(|name| is_name(name));
        let name = name.ok_or(FrontmatterError::Name)?;
        let description = text("description").filter(|text| !text.trim().is_empty());
        let description = description.ok_or(FrontmatterError::Description)?;
        let metadata = all.get("metadata").and_then(Value::as_object);
        let mut keys = metadata.into_iter().flat_map(Map::keys);
        if let Some(key) = keys.find(|key| key.starts_with(RESERVED)) {
            return Err(FrontmatterError::Reserved(key.clone()));
        }
        Ok(Self {
            all,
            name,
            description,
        })
    }
}

/// Returns whether a skill name is valid.
fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// Returns the text between the first line, which is `---`, and the next such line.
fn head(markdown: &str) -> Option<&str> {
    let markdown = markdown.strip_prefix('\u{feff}').unwrap_or(markdown);
    let rest = markdown
        .strip_prefix("---\n")
        .or_else(|| markdown.strip_prefix("---\r\n"))?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        let is_end = line.strip_prefix("---").is_some_and(|end| {
            end.trim_end_matches(['\r', '\n'])
                .trim_matches([' ', '\t'])
                .is_empty()
        });
        if is_end {
            return Some(&rest[..at]);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn front_matter_is_parsed_unchanged() {
        let markdown = "---\r\nname: tea\r\ndescription: Brews tea\r\nmetadata:\r\n  cups: 2\r\n--- \r\n# Tea\n---\n";

        let head = Frontmatter::parse(markdown).unwrap();

        assert_eq!(head.name, "tea");
        assert_eq!(head.description, "Brews tea");
        assert_eq!(
            Value::Object(head.all),
            json!({ "name": "tea", "description": "Brews tea", "metadata": { "cups": 2 } })
        );
        let end = "\u{feff}---\nname: tea\ndescription: x\n---";
        assert!(Frontmatter::parse(end).is_ok());
    }

    #[test]
    fn invalid_front_matter_is_reported() {
        let head = |yaml: &str| Frontmatter::parse(&format!("---\n{yaml}\n---\n")).unwrap_err();
        for markdown in [
            "",
            "# Tea",
            "---\nname: tea\n",
            " ---\nname: tea\n---\n",
            "----\n---\n",
        ] {
            assert_eq!(
                Frontmatter::parse(markdown),
                Err(FrontmatterError::Missing),
                "{markdown:?}"
            );
        }
        assert!(matches!(head("a: ["), FrontmatterError::Unreadable(_)));
        assert!(matches!(head("- a"), FrontmatterError::Unreadable(_)));
        assert!(matches!(
            head(&format!("a: {}", "x".repeat(70_000))),
            FrontmatterError::Unreadable(_)
        ));
        assert_eq!(head("name: tea"), FrontmatterError::Description);
        assert_eq!(
            head("name: tea\ndescription: ' '"),
            FrontmatterError::Description
        );
        assert_eq!(
            head("name: tea\ndescription: 7"),
            FrontmatterError::Description
        );
        assert_eq!(
            head("name: tea\ndescription: x\nmetadata: {io.modelcontextprotocol/a: 1}"),
            FrontmatterError::Reserved("io.modelcontextprotocol/a".to_owned())
        );
        let long = "a".repeat(65);
        for name in [
            "", "Tea", "tea pot", "-tea", "tea-", "a--b", "tée", "a_b", "../a", &long, "7.5",
        ] {
            let error = head(&format!("name: {name}\ndescription: x"));
            assert_eq!(error, FrontmatterError::Name, "{name}");
        }
    }
}
