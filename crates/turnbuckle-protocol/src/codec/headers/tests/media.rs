//! `Accept` and `Content-Type`.

use crate::codec::headers::{Accept, MediaType, parse_accept, parse_content_type};

#[test]
fn accept_headers_of_real_clients_allow_both() {
    for header in [
        "application/json, text/event-stream",
        "text/event-stream, application/json",
        "application/json,text/event-stream",
        "*/*",
        "text/event-stream;q=0.9, */*;q=0.1",
        "Application/JSON ; charset=utf-8 , TEXT/Event-Stream;q=1.0",
        "application/*, text/*",
        "text/html, application/json;q=0.001, text/*;q=0.5",
        ", application/json,, text/event-stream,",
    ] {
        assert!(parse_accept(header).accepts_json_and_sse(), "{header}");
    }
}

#[test]
fn each_media_type_is_matched_separately() {
    let json = Accept {
        json: true,
        event_stream: false,
    };
    let event_stream = Accept {
        json: false,
        event_stream: true,
    };
    let neither = Accept::default();
    for (header, expected) in [
        ("application/json", json),
        ("text/event-stream", event_stream),
        ("application/*", json),
        ("*/*, text/event-stream;q=0", json),
        ("text/event-stream;q=0.000, */*", json),
        ("text/*, application/json; q=0", event_stream),
        ("*/*;q=0, application/json", json),
        ("*/*; Q=0.0", neither),
        ("", neither),
        ("text/html", neither),
        ("json", neither),
        (
            "application/jsonp, text/event-streams, application/json+x",
            neither,
        ),
        ("*/json", neither),
        ("text/html;a=\", application/json,\";b=1", neither),
        ("text/html;a=\"\\\",\", application/json", json),
        ("application/json;q=0;x=1, application/json", json),
    ] {
        assert_eq!(parse_accept(header), expected, "{header}");
    }
}

#[test]
fn content_types_ignore_case_and_parameters() {
    for (header, expected) in [
        ("application/json", MediaType::Json),
        ("Application/JSON;charset=UTF-8", MediaType::Json),
        (" application/json ; charset=utf-8", MediaType::Json),
        ("text/event-stream", MediaType::EventStream),
        ("text/event-stream;charset=utf-8", MediaType::EventStream),
        ("application/json-patch+json", MediaType::Other),
        ("text/plain", MediaType::Other),
        ("application/json, text/plain", MediaType::Other),
        ("", MediaType::Other),
    ] {
        assert_eq!(parse_content_type(header), expected, "{header}");
    }
}
