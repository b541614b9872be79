//! Formats content blocks for people, and returns their raw bytes for files and pipes.

use base64::{
    Engine as _,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Value;
use turnbuckle_protocol::types::{CallToolResult, ContentBlock, Resource, ResourceContents, Role};

use super::{json, sanitize, style};

/// Returns the result of a call for people.
///
/// A text block that only repeats the structured content is omitted. If it is the only block, the structured content
/// is shown as indented JSON.
pub(crate) fn call_result(result: &CallToolResult) -> String {
    match &result.structured_content {
        Some(value) if is_repeated_by(value, &result.content) => json::document(value),
        _ => distinct_blocks(result).map(format_block).collect(),
    }
}

/// Returns the result of a call for a pipe: binary content as bytes, text unchanged.
pub(crate) fn call_result_bytes(result: &CallToolResult) -> Vec<u8> {
    if let Some(value) = &result.structured_content
        && is_repeated_by(value, &result.content)
    {
        return json::document(value).into_bytes();
    }
    match &distinct_blocks(result).collect::<Vec<_>>()[..] {
        [block] if block.as_text().is_none() => {
            block_bytes(block).unwrap_or_else(|| style::strip(&format_block(block)).into_bytes())
        }
        blocks => blocks.iter().flat_map(|block| raw_bytes(block)).collect(),
    }
}

/// Returns the blocks that do not repeat the structured content.
fn distinct_blocks(result: &CallToolResult) -> impl Iterator<Item = &ContentBlock> {
    let value = result.structured_content.as_ref();
    let blocks = result.content.iter();
    blocks.filter(move |block| !value.is_some_and(|value| is_json_of(value, block)))
}

/// Returns content blocks for people, each on its own lines.
pub(crate) fn content_blocks(blocks: &[ContentBlock]) -> String {
    blocks.iter().map(format_block).collect()
}

/// Returns the contents of a resource for people.
pub(crate) fn resource_contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => with_newline(sanitize::block(&text.text)),
        ResourceContents::Blob(blob) => {
            let kind = blob
                .mime_type
                .as_deref()
                .unwrap_or("application/octet-stream");
            summary(kind, &blob.blob)
        }
    }
}

/// Returns a message of a prompt for people.
pub(crate) fn prompt_message(role: Role, block: &ContentBlock) -> String {
    let role_name = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    format!(
        "{}\n{}",
        style::styled(style::NAME, &format!("{role_name}:")),
        format_block(block)
    )
}

/// Returns the raw bytes of a text, image, audio or resource block.
pub(crate) fn block_bytes(block: &ContentBlock) -> Option<Vec<u8>> {
    match block {
        ContentBlock::Text(text) => Some(text.text.clone().into_bytes()),
        ContentBlock::Image(image) => decode(&image.data),
        ContentBlock::Audio(audio) => decode(&audio.data),
        ContentBlock::Resource(embedded) => contents_bytes(&embedded.resource),
        _ => None,
    }
}

/// Returns the raw bytes of resource contents; `None` if they are not Base64.
pub(crate) fn contents_bytes(contents: &ResourceContents) -> Option<Vec<u8>> {
    match contents {
        ResourceContents::Text(text) => Some(text.text.clone().into_bytes()),
        ResourceContents::Blob(blob) => decode(&blob.blob),
    }
}

/// Returns a size in bytes for people: `12 kB`.
pub(crate) fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut shown = bytes as f64 / 1000.0;
    let mut unit = 0;
    while shown >= 999.5 && unit + 1 < UNITS.len() {
        shown /= 1000.0;
        unit += 1;
    }
    if shown < 9.95 {
        format!("{shown:.1} {}", UNITS[unit])
    } else {
        format!("{shown:.0} {}", UNITS[unit])
    }
}

fn format_block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => with_newline(sanitize::block(&text.text)),
        ContentBlock::Image(image) => summary(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => summary(&audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => resource_link(link),
        ContentBlock::Resource(embedded) => {
            let uri = sanitize::line(embedded.resource.uri());
            format!(
                "{}\n{}",
                style::styled(style::DIM, &uri),
                resource_contents(&embedded.resource)
            )
        }
        other => json::document(other),
    }
}

fn raw_bytes(block: &ContentBlock) -> Vec<u8> {
    match block.as_text() {
        Some(text) => with_newline(text.to_owned()).into_bytes(),
        None => style::strip(&format_block(block)).into_bytes(),
    }
}

fn resource_link(link: &Resource) -> String {
    let mut parts = vec![sanitize::line(&link.uri)];
    parts.extend(link.mime_type.as_deref().map(sanitize::line));
    parts.extend(link.size.map(format_size));
    format!("{} {}\n", sanitize::line(&link.name), bracketed(&parts))
}

fn summary(kind: &str, data: &str) -> String {
    let size = match decode(data) {
        Some(bytes) => format_size(bytes.len() as u64),
        None => "not Base64".to_owned(),
    };
    bracketed(&[sanitize::line(kind), size]) + "\n"
}

fn bracketed(parts: &[String]) -> String {
    style::styled(style::DIM, &format!("[{}]", parts.join(", ")))
}

fn with_newline(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn is_repeated_by(value: &Value, blocks: &[ContentBlock]) -> bool {
    match blocks {
        [] => true,
        [block] => is_json_of(value, block),
        _ => false,
    }
}

fn is_json_of(value: &Value, block: &ContentBlock) -> bool {
    let parsed = block.as_text().map(serde_json::from_str::<Value>);
    parsed.is_some_and(|parsed| parsed.is_ok_and(|parsed| parsed == *value))
}

/// Decodes Base64 with or without padding.
fn decode(data: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &base64::alphabet::STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    LENIENT.decode(data).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(blocks: &[ContentBlock]) -> String {
        style::strip(&content_blocks(blocks))
    }

    #[test]
    fn each_kind_of_block_is_shown() {
        let unknown = serde_json::from_value(json!({"type": "hologram", "depth": 3})).unwrap();
        let blocks = [
            ContentBlock::text("two\nlines \u{1b}[31m"),
            ContentBlock::image("AAAA".repeat(4000), "image/png"),
            ContentBlock::audio("!", "audio/wav"),
            ContentBlock::ResourceLink(
                Resource::new("file:///a.txt", "a")
                    .mime_type("text/plain")
                    .size(999u64),
            ),
            ContentBlock::resource(ResourceContents::text("note://1", "remember")),
            ContentBlock::resource(ResourceContents::blob("blob://1", "AAA=")),
            unknown,
        ];

        insta::assert_snapshot!(shown(&blocks), @r#"
        two
        lines \u{1b}[31m
        [image/png, 12 kB]
        [audio/wav, not Base64]
        a [file:///a.txt, text/plain, 999 B]
        note://1
        remember
        blob://1
        [application/octet-stream, 2 B]
        {
          "type": "hologram",
          "depth": 3
        }
        "#);
    }

    #[test]
    fn structured_content_replaces_its_text() {
        let parsed = CallToolResult::structured(json!({"high": 21}));
        let both = CallToolResult::text("It will be warm.").structured_content(json!({"high": 21}));

        insta::assert_snapshot!(call_result(&parsed), @r#"
        {
          "high": 21
        }
        "#);
        assert_eq!(call_result(&both), "It will be warm.\n");
        let mut repeated = both;
        repeated
            .content
            .push(ContentBlock::text(r#"{ "high": 21 }"#));
        assert_eq!(call_result(&repeated), "It will be warm.\n");
        assert_eq!(call_result_bytes(&repeated), b"It will be warm.\n");
    }

    #[test]
    fn a_pipe_gets_text_and_bytes_as_they_are() {
        let exact = |blocks: Vec<ContentBlock>| call_result_bytes(&CallToolResult::new(blocks));

        assert_eq!(exact(vec![ContentBlock::text("\u{1b}[31m")]), b"\x1b[31m\n");
        assert_eq!(
            exact(vec![ContentBlock::image("AQID", "image/png")]),
            [1, 2, 3]
        );
        assert_eq!(
            exact(vec![
                ContentBlock::text("a"),
                ContentBlock::image("AQID", "image/png")
            ]),
            b"a\n[image/png, 3 B]\n"
        );
        assert_eq!(
            call_result_bytes(&CallToolResult::structured(json!([1]))),
            b"[\n  1\n]\n"
        );
    }

    #[test]
    fn bytes_are_exact() {
        assert_eq!(block_bytes(&ContentBlock::text("a\r\n")).unwrap(), b"a\r\n");
        assert_eq!(
            block_bytes(&ContentBlock::image("AQID", "image/png")).unwrap(),
            [1, 2, 3]
        );
        assert_eq!(
            block_bytes(&ContentBlock::image("AQI", "image/png")).unwrap(),
            [1, 2]
        );
        assert_eq!(block_bytes(&ContentBlock::image("*", "image/png")), None);
    }

    #[test]
    fn sizes_have_two_digits_or_three() {
        let shown = [
            0,
            999,
            1000,
            9_940,
            12_000,
            999_400,
            999_600,
            3_000_000_000_000_000,
        ]
        .map(format_size);
        assert_eq!(
            shown.join(" | "),
            "0 B | 999 B | 1.0 kB | 9.9 kB | 12 kB | 999 kB | 1.0 MB | 3000 TB"
        );
    }
}
