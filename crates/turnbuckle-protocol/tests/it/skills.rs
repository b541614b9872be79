//! Payloads of the skills extension.

use serde_json::{Value, json};
use turnbuckle_protocol::{
    Revision, VersionedPayload,
    types::{
        CacheScope, Resource,
        skills::{
            DIRECTORY, GetSkillParams, GetSkillResult, ListSkillsResult, ReadDirectoryParams,
            ReadDirectoryResult, SkillEntry, SkillResource, SkillResources,
        },
    },
};

fn digest() -> String {
    format!("sha256:{}", "0a".repeat(32))
}

fn entry() -> SkillEntry {
    let frontmatter = json!({ "name": "tea", "description": "Brews", "metadata": { "cups": 2 } });
    let files = vec![SkillResource::new("skill://tea/SKILL.md", digest(), 7)];
    SkillEntry::new(
        "skill://tea/SKILL.md",
        frontmatter.as_object().unwrap().clone(),
        files,
    )
}

fn round_trip<T>(value: &T, wire: &Value)
where
    T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
{
    assert_eq!(&serde_json::to_value(value).unwrap(), wire);
    assert_eq!(
        &serde_json::from_str::<T>(&wire.to_string()).unwrap(),
        value
    );
    assert_eq!(&serde_json::from_value::<T>(wire.clone()).unwrap(), value);
}

#[test]
fn entries_keep_their_frontmatter_and_files() {
    let wire = json!({
        "uri": "skill://tea/SKILL.md",
        "frontmatter": { "name": "tea", "description": "Brews", "metadata": { "cups": 2 } },
        "resources": [{ "uri": "skill://tea/SKILL.md", "digest": digest(), "size": 7 }],
    });

    round_trip(&entry(), &wire);
    assert_eq!(entry().name(), Some("tea"));
    assert_eq!(entry().description(), Some("Brews"));
}

#[test]
fn dynamic_files_are_a_string() {
    let mut entry = entry();
    entry.resources = SkillResources::Dynamic;
    let wire = serde_json::to_value(&entry).unwrap();

    assert_eq!(wire["resources"], "dynamic");
    round_trip(&entry, &wire);
    for other in [json!("static"), json!(7), json!({}), Value::Null] {
        let mut wire = wire.clone();
        wire["resources"] = other;
        assert!(serde_json::from_value::<SkillEntry>(wire).is_err());
    }
}

#[test]
fn lists_and_entries_have_cursors_and_cache_hints() {
    let one = serde_json::to_value(entry()).unwrap();

    round_trip(
        &ListSkillsResult::new([entry()])
            .next_cursor("c")
            .ttl_ms(5u64)
            .cache_scope(CacheScope::Public),
        &json!({ "skills": [one], "nextCursor": "c", "ttlMs": 5, "cacheScope": "public" }),
    );
    round_trip(
        &GetSkillResult::new(entry()).ttl_ms(0u64),
        &json!({ "skill": one, "ttlMs": 0 }),
    );
    round_trip(
        &GetSkillParams::new("skill://tea/SKILL.md"),
        &json!({ "uri": "skill://tea/SKILL.md" }),
    );
}

#[test]
fn a_folder_lists_its_direct_entries() {
    round_trip(
        &ReadDirectoryParams::new("skill://tea").cursor("c"),
        &json!({ "uri": "skill://tea", "cursor": "c" }),
    );
    round_trip(
        &ReadDirectoryResult::new([Resource::new("skill://tea/pots", "pots").mime_type(DIRECTORY)]),
        &json!({ "resources": [
            { "uri": "skill://tea/pots", "name": "pots", "mimeType": "inode/directory" },
        ] }),
    );
}

#[test]
fn an_older_peer_gets_no_cache_hints() {
    let mut result = ListSkillsResult::new([entry()])
        .ttl_ms(5u64)
        .cache_scope(CacheScope::Public);

    result.downgrade_to(Revision::LATEST_LEGACY);

    assert_eq!(result, ListSkillsResult::new([entry()]));
}
