//! Content blocks for people, and the exact bytes for files and pipes.

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;
use turnbuckle_protocol::types::{CallToolResult, ContentBlock, Resource, ResourceContents, Role};

use super::{json, plain, style};

/// Returns the result of a call for people.
///
/// Where the text is only the JSON form of the structured content, that is shown over several lines instead; where it
/// stands beside other blocks it is left out.
pub(crate) fn of_call(result: &CallToolResult) -> String {
    match &result.structured_content {
        Some(value) if is_told_by(value, &result.content) => json::document(value),
        _ => own_blocks(result).map(of_block).collect(),
    }
}

/// Returns the result of a call for a pipe: what is bytes as bytes, and text as it is.
pub(crate) fn of_call_exact(result: &CallToolResult) -> Vec<u8> {
    if let Some(value) = &result.structured_content
        && is_told_by(value, &result.content)
    {
        return json::document(value).into_bytes();
    }
    match &own_blocks(result).collect::<Vec<_>>()[..] {
        [block] if block.as_text().is_none() => {
            bytes_of_block(block).unwrap_or_else(|| style::without(&of_block(block)).into_bytes())
        }
        blocks => blocks.iter().flat_map(|block| exact(block)).collect(),
    }
}

/// Returns the blocks that do not only repeat the structured content.
fn own_blocks(result: &CallToolResult) -> impl Iterator<Item = &ContentBlock> {
    let value = result.structured_content.as_ref();
    let blocks = result.content.iter();
    blocks.filter(move |block| !value.is_some_and(|value| is_json_of(value, block)))
}

/// Returns blocks for people, each on lines of its own.
pub(crate) fn of_blocks(blocks: &[ContentBlock]) -> String {
    blocks.iter().map(of_block).collect()
}

/// Returns contents of a resource for people.
pub(crate) fn of_contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::Text(text) => ended(plain::block(&text.text)),
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
pub(crate) fn of_message(role: Role, block: &ContentBlock) -> String {
    let speaker = match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    format!(
        "{}\n{}",
        style::paint(style::NAME, &format!("{speaker}:")),
        of_block(block)
    )
}

/// Returns the exact bytes of a block that is text, picture, sound or a resource.
pub(crate) fn bytes_of_block(block: &ContentBlock) -> Option<Vec<u8>> {
    match block {
        ContentBlock::Text(text) => Some(text.text.clone().into_bytes()),
        ContentBlock::Image(image) => decode(&image.data),
        ContentBlock::Audio(audio) => decode(&audio.data),
        ContentBlock::Resource(embedded) => bytes_of_contents(&embedded.resource),
        _ => None,
    }
}

/// Returns the exact bytes of a resource; `None` if they are not Base64.
pub(crate) fn bytes_of_contents(contents: &ResourceContents) -> Option<Vec<u8>> {
    match contents {
        ResourceContents::Text(text) => Some(text.text.clone().into_bytes()),
        ResourceContents::Blob(blob) => decode(&blob.blob),
    }
}

/// Returns a number of bytes for people: `12 kB`.
pub(crate) fn size(bytes: u64) -> String {
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
    match shown < 9.95 {
        true => format!("{shown:.1} {}", UNITS[unit]),
        false => format!("{shown:.0} {}", UNITS[unit]),
    }
}

fn of_block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => ended(plain::block(&text.text)),
        ContentBlock::Image(image) => summary(&image.mime_type, &image.data),
        ContentBlock::Audio(audio) => summary(&audio.mime_type, &audio.data),
        ContentBlock::ResourceLink(link) => of_link(link),
        ContentBlock::Resource(embedded) => {
            let uri = plain::line(embedded.resource.uri());
            format!(
                "{}\n{}",
                style::paint(style::DIM, &uri),
                of_contents(&embedded.resource)
            )
        }
        other => json::document(other),
    }
}

fn exact(block: &ContentBlock) -> Vec<u8> {
    match block.as_text() {
        Some(text) => ended(text.to_owned()).into_bytes(),
        None => style::without(&of_block(block)).into_bytes(),
    }
}

fn of_link(link: &Resource) -> String {
    let mut parts = vec![plain::line(&link.uri)];
    parts.extend(link.mime_type.as_deref().map(plain::line));
    parts.extend(link.size.map(size));
    format!("{} {}\n", plain::line(&link.name), bracketed(&parts))
}

fn summary(kind: &str, data: &str) -> String {
    let size = match decode(data) {
        Some(bytes) => size(bytes.len() as u64),
        None => "not Base64".to_owned(),
    };
    bracketed(&[plain::line(kind), size]) + "\n"
}

fn bracketed(parts: &[String]) -> String {
    style::paint(style::DIM, &format!("[{}]", parts.join(", ")))
}

fn ended(mut text: String) -> String {
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

fn is_told_by(value: &Value, blocks: &[ContentBlock]) -> bool {
    match blocks {
        [] => true,
        [block] => is_json_of(value, block),
        _ => false,
    }
}

fn is_json_of(value: &Value, block: &ContentBlock) -> bool {
    let told = block.as_text().map(serde_json::from_str::<Value>);
    told.is_some_and(|told| told.is_ok_and(|told| told == *value))
}

/// Peers differ on whether Base64 ends with `=`.
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
        style::without(&of_blocks(blocks))
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
    fn structured_content_is_shown_in_place_of_its_own_text() {
        let told = CallToolResult::structured(json!({"high": 21}));
        let both = CallToolResult::text("It will be warm.").structured_content(json!({"high": 21}));

        insta::assert_snapshot!(of_call(&told), @r#"
        {
          "high": 21
        }
        "#);
        assert_eq!(of_call(&both), "It will be warm.\n");
        let mut repeated = both;
        repeated
            .content
            .push(ContentBlock::text(r#"{ "high": 21 }"#));
        assert_eq!(of_call(&repeated), "It will be warm.\n");
        assert_eq!(of_call_exact(&repeated), b"It will be warm.\n");
    }

    #[test]
    fn a_pipe_gets_text_and_bytes_as_they_are() {
        let exact = |blocks: Vec<ContentBlock>| of_call_exact(&CallToolResult::new(blocks));

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
            of_call_exact(&CallToolResult::structured(json!([1]))),
            b"[\n  1\n]\n"
        );
    }

    #[test]
    fn bytes_are_exact() {
        assert_eq!(
            bytes_of_block(&ContentBlock::text("a\r\n")).unwrap(),
            b"a\r\n"
        );
        assert_eq!(
            bytes_of_block(&ContentBlock::image("AQID", "image/png")).unwrap(),
            [1, 2, 3]
        );
        assert_eq!(
            bytes_of_block(&ContentBlock::image("AQI", "image/png")).unwrap(),
            [1, 2]
        );
        assert_eq!(bytes_of_block(&ContentBlock::image("*", "image/png")), None);
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
        .map(size);
        assert_eq!(
            shown.join(" | "),
            "0 B | 999 B | 1.0 kB | 9.9 kB | 12 kB | 999 kB | 1.0 MB | 3000 TB"
        );
    }
}
