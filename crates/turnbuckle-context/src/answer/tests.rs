use serde::Serialize;

use super::*;

#[derive(Serialize)]
struct Shown {
    text: String,
}

fn shape(item: &&str, mode: ContentMode) -> Shown {
    let most = match mode {
        ContentMode::Minimal => 10,
        ContentMode::Preview => 1_000,
        ContentMode::Full => usize::MAX,
    };
    Shown {
        text: item.chars().take(most).collect(),
    }
}

fn wanted(content_mode: ContentMode, max_tokens: usize) -> ResponseOptions {
    ResponseOptions {
        content_mode: Some(content_mode),
        max_tokens: Some(max_tokens),
        cursor: None,
    }
}

#[test]
fn items_are_shown_while_there_is_room() {
    let items = ["x"; 100];
    let shown = wanted(ContentMode::Full, 200).fit_to_limit(&items, shape);
    assert_eq!(shown.len(), 800 / r#"{"text":"x"},"#.len());
}

#[test]
fn the_first_is_shortened_rather_than_left_out() {
    let long = "x".repeat(100_000);
    let shown = wanted(ContentMode::Full, 500).fit_to_limit(&[&*long, &*long], shape);
    assert_eq!(shown.len(), 1, "the next page begins with the second");
    assert_eq!(shown[0].text.len(), 1_000);
    let shown = wanted(ContentMode::Full, 200).fit_to_limit(&[&*long], shape);
    assert_eq!(shown[0].text.len(), 10);
}

#[test]
fn a_text_is_cut_between_characters() {
    assert_eq!(truncate("größer", 10), "größer");
    assert_eq!(truncate("größer", 4), "grö…");
    assert_eq!(one_line("a\n  b\tc", 9), "a b c");
    assert_eq!(one_line(&"wörter ".repeat(1_000), 8), "wörter…");
}

#[test]
fn times_that_no_clock_shows_do_no_harm() {
    assert_eq!(format_time(0), "1970-01-01T00:00:00Z");
    assert_eq!(format_time(-1), "1970-01-01T00:00:00Z");
    assert_eq!(format_time(i64::MAX), "9999-12-31T23:59:59Z");
}

#[test]
fn the_first_is_there_even_if_nothing_fits() {
    let shown = wanted(ContentMode::Full, 0).fit_to_limit(&["x", "y"], shape);
    assert_eq!(shown.len(), 1, "paging goes on behind it");
    let many = vec!["t".repeat(100); 50];
    let few = tags_for_mode(&many, ContentMode::Minimal);
    assert!(few.len() == MAX_MINIMAL_TAGS && few[0].len() <= MAX_MINIMAL_TAG_CHARS + 3);
    assert_eq!(tags_for_mode(&many, ContentMode::Full), many);
}
