use std::collections::HashSet;

use super::*;

#[test]
fn a_line_splits_at_commas() {
    assert_eq!(fields("a,b,,c"), ["a", "b", "", "c"]);
    assert_eq!(fields("a,"), ["a", ""]);
}

#[test]
fn a_quoted_field_keeps_its_commas_and_marks() {
    assert_eq!(fields(r#"a,"b, ""c""",d"#), ["a", r#"b, "c""#, "d"]);
    assert_eq!(fields(r#""a","""#), ["a", ""]);
}

#[test]
fn a_row_is_found_by_its_id() {
    let row = find("base.components.modern").unwrap();

    assert_eq!(row.area, "base");
    assert_eq!(row.level, "MUST");
    assert_eq!(row.role, "both");
    assert_eq!(row.revisions, ["2026-07-28"]);
    assert!(
        row.summary
            .starts_with("Support the base message layer, per-request")
    );
    assert!(!row.is_on_the_wire());
    assert_eq!(find("base.components"), None);
}

#[test]
fn every_id_is_plain_and_unique() {
    let mut seen = HashSet::new();
    for row in all() {
        let plain = row
            .id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte));
        assert!(plain && !row.id.is_empty(), "`{}`", row.id);
        assert!(seen.insert(row.id), "`{}` stands twice", row.id);
        assert_eq!(find(row.id), Some(row));
    }
}

#[test]
fn every_row_uses_the_words_we_know() {
    for row in all() {
        let id = &row.id;
        assert!(
            row.area
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'-'),
            "{id}"
        );
        assert!(
            ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"].contains(&row.level),
            "{id}"
        );
        assert!(
            ["server", "client", "both", "as"].contains(&row.role),
            "{id}"
        );
        assert!(["wire", "local"].contains(&row.observable), "{id}");
        assert!(
            row.revisions.iter().all(|date| DATES.contains(date)),
            "{id}"
        );
        assert!(row.revisions.is_sorted(), "{id}");
        assert!(!row.summary.is_empty() && !row.source.is_empty(), "{id}");
    }
}
