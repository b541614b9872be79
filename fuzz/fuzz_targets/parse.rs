//! Any bytes are a message, or get an error; whether they are JSON is what serde_json says too.
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
        Ok(Incoming::One(message)) => look(&message),
        Ok(Incoming::Batch(entries)) => entries.iter().flatten().for_each(look),
        Err(malformed) => assert!(matches!(malformed.error.code, -32700 | -32600 | -32602)),
    }
});

/// The verdict of serde_json; `None` if it fails for another reason than the grammar.
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

fn look(message: &Message<'_>) {
    match message {
        Message::Request(request) => look_at_params(&request.params),
        Message::Notification(notification) => look_at_params(&notification.params),
        Message::Response(_) | Message::Complaint(_) => {}
    }
}

fn look_at_params(params: &Params<'_>) {
    for (name, value) in params
        .object()
        .into_iter()
        .flat_map(|object| object.members())
    {
        assert_eq!(params.get(&name), Some(value));
        assert_ne!(is_json(value.as_bytes()), Some(false));
    }
}
