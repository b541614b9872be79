use super::*;

#[test]
fn an_event_id_is_read_back() {
    for text in ["1-1", "0-0", "18446744073709551615-18446744073709551615"] {
        assert_eq!(text.parse::<EventId>().unwrap().to_string(), text);
    }
}

#[test]
fn other_spellings_are_not_event_ids() {
    for text in [
        "",
        "-",
        "1",
        "1-",
        "-1",
        "01-1",
        "1-01",
        "+1-1",
        "1-+1",
        "1-1-1",
        "1--1",
        " 1-1",
        "1-1 ",
        "1_1",
        "a-1",
        "1-18446744073709551616",
        "1-\u{0661}",
    ] {
        assert_eq!(text.parse::<EventId>(), Err(InvalidEventId), "{text:?}");
    }
}
