//! What a client does, seen from the other end of a transport.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fake_http;
