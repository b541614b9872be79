//! Any bytes are a message, or get an error; what passes can be read by serde_json.
#![no_main]

use libfuzzer_sys::fuzz_target;
use turnbuckle_protocol::jsonrpc::{Incoming, Message, Params, parse};

fuzz_target!(|bytes: &[u8]| {
    match parse(bytes) {
        Ok(Incoming::One(message)) => look(&message),
        Ok(Incoming::Batch(entries)) => entries.iter().flatten().for_each(look),
        Err(malformed) => assert!(matches!(malformed.error.code, -32700 | -32600 | -32602)),
    }
});

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
        let read = serde_json::from_str::<serde_json::Value>(value);
        assert!(
            read.is_ok()
                || read.is_err_and(|error| error.to_string().starts_with("number out of range"))
        );
    }
}
