//! What kind of content a file has, by its name.

/// The media type of a file, if its name tells.
pub(super) fn of(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    Some(match extension.to_ascii_lowercase().as_str() {
        "md" | "markdown" => "text/markdown",
        "txt" | "text" | "log" => "text/plain",
        "html" | "htm" => "text/html",
        "css" => "text/css",
        "csv" => "text/csv",
        "js" | "mjs" | "cjs" => "text/javascript",
        "ts" | "tsx" => "text/x-typescript",
        "py" => "text/x-python",
        "sh" | "bash" => "text/x-shellscript",
        "rs" => "text/x-rust",
        "go" => "text/x-go",
        "rb" => "text/x-ruby",
        "sql" => "application/sql",
        "json" => "application/json",
        "jsonl" => "application/jsonl",
        "yaml" | "yml" => "application/yaml",
        "toml" => "application/toml",
        "xml" | "xsd" => "application/xml",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "mp4" => "video/mp4",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "wasm" => "application/wasm",
        "ttf" => "font/ttf",
        "docx" => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "xlsx" => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "pptx" => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        _ => return None,
    })
}

/// Says whether content of a type is never text, even if its bytes could be read as such.
pub(super) fn is_binary(media_type: &str) -> bool {
    let (kind, name) = media_type.split_once('/').unwrap_or((media_type, ""));
    match kind {
        "image" => name != "svg+xml",
        "audio" | "video" | "font" => true,
        "application" => {
            matches!(name, "pdf" | "zip" | "gzip" | "wasm") || name.starts_with("vnd.")
        }
        _ => false,
    }
}
