//! Any bytes are a message or an error; serde_json agrees on whether they are JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use turnbuckle_protocol::jsonrpc::{Incoming, Message, Params, parse};

fuzz_target!(|bytes: &[u8]| {
    let parsed = parse(bytes);
    if let Some(is_json) = is_json(bytes) {
        let code = parsed
            .as_ref()
            .map_or_else(|malformed| malformed.error.code, |_| 0);
        assert_eq!(code != -32700, is_json);
    }
    match parsed {
        Ok(Incoming::One(message)) => read_message(&message),
        Ok(Incoming::Batch(entries)) => entries.iter().flatten().for_each(read_message),
        Err(malformed) => assert!(matches!(malformed.error.code, -32700 | -32600 | -32602)),
    }
});

/// Returns whether serde_json accepts the bytes; `None` if it fails for another reason than the grammar.
fn is_json(bytes: &[u8]) -> Option<bool> {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(_) => Some(true),
        Err(error) => {
            let error = error.to_string();
            let other = ["number out of range", "recursion limit exceeded"];
            (!other.iter().any(|reason| error.starts_with(reason))).then_some(false)
        }
    }
}

fn read_message(message: &Message<'_>) {
    match message {
        Message::Request(request) => read_params(&request.params),
        Message::Notification(notification) => read_params(&notification.params),
        Message::Response(_) | Message::ErrorWithoutId(_) => {}
    }
}

fn read_params(params: &Params<'_>) {
    for (name, value) in params
        .object()
        .into_iter()
        .flat_map(|object| object.members())
    {
        assert_eq!(params.get(&name), Some(value));
        assert_ne!(is_json(value.as_bytes()), Some(false));
    }
}
