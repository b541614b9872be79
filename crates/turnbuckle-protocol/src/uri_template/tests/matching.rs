use super::*;

/// Returns the variables as `name=value` joined by `|`.
fn found(source: &str, uri: &str) -> Option<String> {
    let variables = template(source).matches(uri)?;
    let pairs = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    Some(pairs.collect::<Vec<_>>().join("|"))
}

#[track_caller]
fn check(rows: &[(&str, &str, Option<&str>)]) {
    for (source, uri, expected) in rows {
        assert_eq!(
            found(source, uri).as_deref(),
            *expected,
            "{source} with {uri}"
        );
    }
}

#[test]
fn a_variable_stays_in_its_segment() {
    check(&[
        ("n://{a}", "n://x", Some("a=x")),
        ("n://{a}", "n://", None),
        ("n://{a}", "m://x", None),
        ("n://{a}", "n://x/y", None),
        ("n://{a}", "n://x?y", None),
        ("n://{a}", "n://x#y", None),
        ("n://{a}", "n://x,y", None),
        ("n://{a}/z", "n://x/z", Some("a=x")),
        ("n://{a}/z", "n://x/z/z", None),
        ("n://{a}/{b}", "n://x/y", Some("a=x|b=y")),
        ("n://{a}/{b}", "n://x/", None),
        ("n://{a,b}", "n://x,y", Some("a=x|b=y")),
        ("n://{a,b}", "n://x", None),
        ("n://{a,b}", "n://x,y,z", None),
        ("n://fixed", "n://fixed", Some("")),
        ("n://fixed", "n://fixed/", None),
        ("", "", Some("")),
        ("", "x", None),
    ]);
}

#[test]
fn a_literal_ends_a_variable_where_it_first_occurs() {
    check(&[
        ("{a}-{b}", "x-y-z", Some("a=x|b=y-z")),
        ("{a}-{b}", "--z", Some("a=-|b=z")),
        ("{a}.txt", "x.txt.txt", Some("a=x.txt")),
        ("{a}.txt", ".txt", None),
        ("{a}{.b}", "x.tar.gz", Some("a=x|b=tar.gz")),
        ("f:{+a}/raw", "f:x/raw/raw", Some("a=x/raw")),
        ("f:{+a}/raw/{b}", "f:x/y/raw/z", Some("a=x/y|b=z")),
        ("f:{+a}{?q}", "f:x/y?q=1", Some("a=x/y|q=1")),
        ("f:{+a}{?q}{#h}", "f:x/y#z", Some("a=x/y|h=z")),
        ("f:{+a}", "f:", None),
        ("{a}/é", "é/%C3%A9", Some("a=é")),
        ("{a}/é", "é", None),
        ("{+a,b}", "x,y,z", Some("a=x|b=y,z")),
        ("{#a}", "#x#y", Some("a=x#y")),
    ]);
}

#[test]
fn positional_expressions_are_required() {
    check(&[
        ("u{/a}", "u/x", Some("a=x")),
        ("u{/a}", "u", None),
        ("u{/a}", "u/", None),
        ("u{/a,b}", "u/x/y", Some("a=x|b=y")),
        ("u{/a}{/b}", "u/x/y", Some("a=x|b=y")),
        ("u{/a}{/b}", "u/x", None),
        ("u{/a}{/b}", "u//y", None),
        ("u{/a,b}/{c}", "u/x/y/z", Some("a=x|b=y|c=z")),
        ("u{/a}{/b}/{c}", "u/x/y/z", Some("a=x|b=y|c=z")),
        ("u{/a}{/b}/{c}", "u/x/y", None),
        ("u{;m}{/a}/{c}", "u;m=1/x/z", Some("a=x|c=z|m=1")),
        ("u{;m}{/a}/{c}", "u/x/z", Some("a=x|c=z")),
        ("u{.a}", "u.x", Some("a=x")),
        ("u{#a}", "u#x/y?z", Some("a=x/y?z")),
        ("u{#a}", "u", None),
    ]);
}

#[test]
fn named_variables_come_in_any_order_or_not_at_all() {
    check(&[
        ("u{?a,b}", "u?a=1&b=2", Some("a=1|b=2")),
        ("u{?a,b}", "u?b=2&a=1", Some("a=1|b=2")),
        ("u{?a,b}", "u?b=2", Some("b=2")),
        ("u{?a,b}", "u", Some("")),
        ("u{?a,b}", "u?", None),
        ("u{?a}", "u?a=", Some("a=")),
        ("u{?a}", "u?a", Some("a=")),
        ("u{?a}", "u?a=/x?y=z,t", Some("a=/x?y=z,t")),
        ("u{?a}", "u?a=1#h", None),
        ("u{?a}", "u?a=1&a=2", None),
        ("u{?a}", "u?a=1&other=2", None),
        ("u{?a}#h", "u?a=1#h", Some("a=1")),
        ("u{?a}#h", "u#h", Some("")),
        ("u?k=v{&a}", "u?k=v&a=1", Some("a=1")),
        ("u?k=v{&a}", "u?k=v", Some("")),
        ("u{;a,b}/z", "u;b;a=1/z", Some("a=1|b=")),
        ("u{;a}{?b}", "u?b=1", Some("b=1")),
        ("u{/a}{;m}{?b}", "u/x;m=1?b=2", Some("a=x|b=2|m=1")),
    ]);
}

#[test]
fn a_list_is_joined_by_commas() {
    check(&[
        ("{a*}", "x,y", Some("a=x,y")),
        ("u{/a*}", "u/x/y/z", Some("a=x,y,z")),
        ("u{/a*}", "u/x,y", Some("a=x,y")),
        ("u{/a*}", "u/x//y", None),
        ("u{/a*}", "u/x/", None),
        ("u{/a*}/end", "u/x/y/end", Some("a=x,y")),
        ("u{/a*,b}", "u/x/y/z", Some("a=x,y|b=z")),
        ("u{/a,b*,c}", "u/w/x/y/z", Some("a=w|b=x,y|c=z")),
        ("u{/a,b*,c}", "u/w/x", None),
        ("u{.a*}", "u.x.y", Some("a=x,y")),
        ("u{?a*}", "u?a=x&a=y", Some("a=x,y")),
        ("u{?a*,b}", "u?a=x&b=z&a=y", Some("a=x,y|b=z")),
        ("u{?a}", "u?a=x,y", Some("a=x,y")),
        ("u{;a*}", "u;a=x;a=y", Some("a=x,y")),
        ("u{/a*}{?b*}", "u/x/y?b=1&b=2", Some("a=x,y|b=1,2")),
    ]);
}

#[test]
fn values_are_decoded_once_and_strictly() {
    check(&[
        ("{a}", "%C3%A9t%C3%A9", Some("a=été")),
        ("{a}", "été", Some("a=été")),
        ("{a}", "%2F%3f%2C", Some("a=/?,")),
        ("{a}", "%2541", Some("a=%41")),
        ("{a}", "a+b", Some("a=a+b")),
        ("{a}", "%", None),
        ("{a}", "%4", None),
        ("{a}", "%4g", None),
        ("{a}", "%+4", None),
        ("{a}", "%é0", None),
        ("{a}", "%C3", None),
        ("{a*}", "%C3,%A9", None),
        ("{?a}", "?a=%FF", None),
    ]);
}

#[test]
fn one_name_has_one_value() {
    check(&[
        ("{a}/{a}", "x/x", Some("a=x")),
        ("{a}/{a}", "x/y", None),
        ("{a}/{a}", "x/xy", None),
        ("{/a:1,a}", "/v/value", Some("a=value")),
        ("{/a:1,a}", "/w/value", None),
        ("{/a:1,a:3}", "/v/val", Some("a=val")),
        ("{a:3}", "été", Some("a=été")),
        ("{a:3}", "four", None),
        ("{?a:1,a}", "?a=v&a=value", Some("a=value")),
    ]);
}

#[test]
fn the_more_specific_of_two_is_found_by_counting() {
    let templates = [template("n://{+rest}"), template("n://notes/{name}")];
    let uri = "n://notes/today";

    let matching = templates.iter().filter(|one| one.matches(uri).is_some());
    let best = matching.max_by_key(|one| one.specificity()).unwrap();

    assert_eq!(best.as_str(), "n://notes/{name}");
}
