//! Reads HTTP/1.1 responses from a buffer, and the JSON-RPC message out of a response.
//!
//! Does no I/O: a driver appends the bytes it received and tests whether a response is complete.

use crate::Failure;

/// One complete response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The body, without chunk framing.
    pub body: Vec<u8>,
    head: String,
}

impl Response {
    /// Takes the first complete response from the front of `buffer`; `None` means more bytes are needed.
    pub fn take(buffer: &mut Vec<u8>) -> Result<Option<Response>, Failure> {
        let Some(end) = find(buffer, b"\r\n\r\n") else {
            return Ok(None);
        };
        let head = std::str::from_utf8(&buffer[..end])?;
        let status = head.get(9..12).ok_or("no status line")?.parse()?;
        let rest = &buffer[end + 4..];
        let body = if header(head, "transfer-encoding").is_some() {
            chunked(rest)?
        } else {
            let length = header(head, "content-length").map_or(Ok(0), str::parse)?;
            rest.get(..length).map(|body| (body.to_vec(), length))
        };
        let Some((body, length)) = body else {
            return Ok(None);
        };
        let head = head.to_owned();
        buffer.drain(..end + 4 + length);
        Ok(Some(Response { status, body, head }))
    }

    /// Returns the value of a header; `name` is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }

    /// Returns the JSON-RPC response: the body itself, or the last event of a stream.
    pub fn response_text(&self) -> &str {
        response_text(&self.body, self.header("content-type").unwrap_or_default())
    }

    /// Counts the notifications before the response.
    pub fn notifications(&self) -> usize {
        let body = std::str::from_utf8(&self.body).unwrap_or_default();
        let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter(|data| data.contains(r#""method":"notifications/"#))
            .count()
    }
}

/// Returns the JSON-RPC response in a body: the body itself, or the last event with data of a stream.
pub fn response_text<'a>(body: &'a [u8], content_type: &str) -> &'a str {
    let body = std::str::from_utf8(body).unwrap_or_default();
    if !content_type.starts_with("text/event-stream") {
        return body;
    }
    let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
    let mut data = data.map(str::trim_start);
    data.rfind(|data| !data.is_empty()).unwrap_or_default()
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().skip(1).find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Returns the joined chunks and their length on the wire, or `None` while the last one is missing.
fn chunked(mut rest: &[u8]) -> Result<Option<(Vec<u8>, usize)>, Failure> {
    let (whole, mut body) = (rest.len(), Vec::new());
    loop {
        let Some(line) = find(rest, b"\r\n") else {
            return Ok(None);
        };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line])?, 16)?;
        let Some(chunk) = rest.get(line + 2..line + 2 + size + 2) else {
            return Ok(None);
        };
        body.extend_from_slice(&chunk[..size]);
        rest = &rest[line + 2 + size + 2..];
        if size == 0 {
            return Ok(Some((body, whole - rest.len())));
        }
    }
}

fn find(bytes: &[u8], pattern: &[u8]) -> Option<usize> {
    bytes
        .windows(pattern.len())
        .position(|window| window == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZED: &[u8] =
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    const STREAM: &[u8] =
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
        10\r\nid: 1\ndata: \n\n: \r\n9\r\n\ndata: {}\r\n2\r\n\n\n\r\n0\r\n\r\n";

    #[test]
    fn needs_every_byte_and_leaves_the_rest() {
        for whole in [SIZED, STREAM] {
            for cut in 0..whole.len() {
                assert_eq!(
                    Response::take(&mut whole[..cut].to_vec()).unwrap(),
                    None,
                    "{cut}"
                );
            }
            let mut buffer = [whole, b"HTTP"].concat();

            let response = Response::take(&mut buffer).unwrap().unwrap();

            assert_eq!((response.status, response.response_text()), (200, "{}"));
            assert_eq!(buffer, b"HTTP");
        }
    }

    #[test]
    fn a_response_without_body_is_complete_with_its_head() {
        let mut buffer = b"HTTP/1.1 202 Accepted\r\nMcp-Session-Id: a1\r\n\r\n".to_vec();

        let response = Response::take(&mut buffer).unwrap().unwrap();

        assert_eq!(response.status, 202);
        assert_eq!(response.header("mcp-session-id"), Some("a1"));
    }
}
