use super::*;

#[track_caller]
fn rejection(source: &str) -> String {
    UriTemplate::parse(source).unwrap_err().to_string()
}

#[test]
fn an_error_has_the_reason_and_the_offset() {
    let rows = [
        ("a{b", "`{` at byte 1 has no `}`"),
        ("a}b", "`}` at byte 1 has no `{`"),
        ("a b", "' ' at byte 1 must be percent-encoded"),
        ("a%2", "'%' at byte 1 must be percent-encoded"),
        ("é\n", "'\\n' at byte 2 must be percent-encoded"),
        ("{!a}", "operator `!` at byte 1 is reserved"),
        (
            "{a:0}",
            "prefix length \"0\" at byte 3 is not a number from 1 to 9999",
        ),
        (
            "{a:+1}",
            "prefix length \"+1\" at byte 3 is not a number from 1 to 9999",
        ),
        ("x{a}{b}", "no delimiter between `a` and `b` (byte 4)"),
        ("{/a*,b,c*}", "no delimiter between `a` and `c` (byte 7)"),
    ];
    for (source, message) in rows {
        assert_eq!(rejection(source), message, "{source}");
    }
}

#[test]
fn names_are_those_of_the_rfc() {
    for source in ["{a.b}", "{_}", "{a%20b}", "{1}", "{?a,b.c*,d:3}"] {
        assert!(UriTemplate::parse(source).is_ok(), "{source}");
    }
    for source in [
        "{}", "{+}", "{a,}", "{a..b}", "{.}", "{a-b}", "{a%2}", "{a b}", "{{a}}", "{a**}",
        "{a:1*}", "{é}",
    ] {
        let error = UriTemplate::parse(source).unwrap_err();
        let is_name = matches!(error, UriTemplateError::Name { .. });
        assert!(is_name, "{source}: {error}");
    }
}

#[test]
fn ambiguous_templates_are_rejected() {
    for source in [
        "{a}{b}",
        "{+a}{b}",
        "{/a}{b}",
        "{?a}{b}",
        "{/a*}{/b}",
        "{/a,b}{/c}",
        "{.a*}{.b}",
        "{a*,b*}",
        "{?a}{&b}",
        "{&a}{&b}",
        "{;a}{;b}",
        "{?a}{?b}",
        "{/a*}{?q}{/b}",
        "{;a}{?q}{;b}",
    ] {
        let error = UriTemplate::parse(source).unwrap_err();
        assert!(
            matches!(error, UriTemplateError::Adjacent { .. }),
            "{source}: {error}"
        );
        let lenient = UriTemplate::parse_for_expansion(source).unwrap();
        assert_eq!(lenient.matches("/x/y?a=1"), None, "{source}");
    }
    for source in [
        "{a}{.b}",
        "{a}{/b}",
        "{+a}{?b}",
        "{/a}{/b}",
        "{/a*}{?b*,c*}{#d}",
        "{a}-{b}",
        "{a*,b}",
    ] {
        assert!(UriTemplate::parse(source).is_ok(), "{source}");
    }
}

#[test]
fn limits_are_enforced() {
    let long = "a".repeat(UriTemplate::MAX_LENGTH);
    let expressions = "/{a}".repeat(UriTemplate::MAX_EXPRESSIONS);
    let variables = vec!["a"; UriTemplate::MAX_VARIABLES].join(",");

    assert!(UriTemplate::parse(&long).is_ok());
    assert!(UriTemplate::parse(&expressions).is_ok());
    assert!(UriTemplate::parse(&format!("{{{variables}}}")).is_ok());
    assert_eq!(
        UriTemplate::parse(&(long + "a")),
        Err(UriTemplateError::TooLong { length: 8193 })
    );
    assert_eq!(
        UriTemplate::parse(&(expressions + "/{a}")),
        Err(UriTemplateError::TooManyExpressions { at: 257 })
    );
    assert_eq!(
        UriTemplate::parse(&format!("{{{variables},a}}")),
        Err(UriTemplateError::TooManyVariables { at: 257 })
    );
}

#[test]
fn variables_are_named_once_in_their_order() {
    let template = template("x:{/b:1,b}{?c,a*}");

    assert_eq!(template.variables().collect::<Vec<_>>(), ["b", "c", "a"]);
}

#[test]
fn specificity_counts_literal_bytes() {
    assert_eq!(template("{+a}").specificity(), 0);
    assert_eq!(template("n://{a}/raw{?b}").specificity(), 8);
}
