use crate::transport::http::url::*;

fn url(text: &str) -> Url {
    text.parse()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn a_url_is_stored_unchanged() {
    for text in [
        "http://example.com",
        "HTTP://Example.COM:80/A%2fb?x=%20&y",
        "https://[::1]:8443/mcp/",
        "http://127.0.0.1:3000?token=1",
    ] {
        assert_eq!(url(text).0.text.as_ref(), text);
    }
}

#[test]
fn an_invalid_server_url_is_rejected_with_its_reason() {
    for (text, error) in [
        ("", InvalidHttpUrl::Scheme),
        ("example.com/mcp", InvalidHttpUrl::Scheme),
        ("ftp://example.com", InvalidHttpUrl::Scheme),
        ("file:///etc/passwd", InvalidHttpUrl::Scheme),
        ("javascript:alert(1)//://", InvalidHttpUrl::Scheme),
        ("http://", InvalidHttpUrl::Host),
        ("http:///mcp", InvalidHttpUrl::Host),
        ("http://:80/", InvalidHttpUrl::Host),
        ("http://[::1/", InvalidHttpUrl::Host),
        ("http://[nonsense]/", InvalidHttpUrl::Host),
        ("http://exa%6dple.com/", InvalidHttpUrl::Host),
        ("http://a:b:1/", InvalidHttpUrl::Host),
        ("http://example.com:x/", InvalidHttpUrl::Port),
        ("http://example.com:+80/", InvalidHttpUrl::Port),
        ("http://example.com:65536/", InvalidHttpUrl::Port),
        ("http://user@example.com/", InvalidHttpUrl::Userinfo),
        ("http://user:secret@example.com/", InvalidHttpUrl::Userinfo),
        ("http://example.com/#top", InvalidHttpUrl::Fragment),
        ("http://example.com/a b", InvalidHttpUrl::Character),
        ("http://example.com/\r\nX: y", InvalidHttpUrl::Character),
        (
            "http://example.com\\@evil.example/",
            InvalidHttpUrl::Character,
        ),
        ("http://exämple.com/", InvalidHttpUrl::Character),
    ] {
        assert_eq!(text.parse::<Url>().err(), Some(error), "{text}");
    }
}

#[test]
fn origins_are_compared_by_scheme_host_and_port() {
    let origin = |text: &str| url(text).origin().clone();

    assert_eq!(
        origin("http://EXAMPLE.com/a"),
        origin("http://example.com:80/b?c")
    );
    assert_eq!(
        origin("https://example.com"),
        origin("https://example.com:443")
    );
    assert_eq!(origin("http://example.com:/"), origin("http://example.com"));
    for other in [
        "https://example.com",
        "http://example.com:8080",
        "http://example.com.",
        "http://www.example.com",
    ] {
        assert_ne!(origin("http://example.com"), origin(other));
    }
}

#[test]
fn an_origin_is_printed_without_the_default_port() {
    for (text, shown) in [
        ("HTTP://Example.com:80/mcp", "http://example.com"),
        ("http://[::1]:8080/mcp?a", "http://[::1]:8080"),
        ("https://example.com:80", "https://example.com:80"),
    ] {
        assert_eq!(url(text).origin().to_string(), shown);
    }
}

#[test]
fn debug_output_of_a_url_has_no_query() {
    assert_eq!(format!("{:?}", url("http://a/b?key=1")), "http://a/b?***");
}

/// The base and most rows are those of RFC 3986, section 5.4.
#[test]
fn references_are_resolved_as_rfc_3986_defines() {
    for (reference, expected) in [
        ("http://other/x", "http://other/x"),
        ("g", "http://a/b/c/g"),
        ("./g", "http://a/b/c/g"),
        ("g/", "http://a/b/c/g/"),
        ("/g", "http://a/g"),
        ("//g", "http://g"),
        ("//g:81/h?i", "http://g:81/h?i"),
        ("?y", "http://a/b/c/d;p?y"),
        ("g?y", "http://a/b/c/g?y"),
        ("g?y/../z", "http://a/b/c/g?y/../z"),
        ("#s", "http://a/b/c/d;p?q"),
        ("g#s", "http://a/b/c/g"),
        (";x", "http://a/b/c/;x"),
        ("", "http://a/b/c/d;p?q"),
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../g", "http://a/b/g"),
        ("../..", "http://a/"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/../h", "http://a/b/c/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("a/b:c", "http://a/b/c/a/b:c"),
        (" /g\n", "http://a/g"),
        ("/x//y/", "http://a/x//y/"),
    ] {
        let base = url("http://a/b/c/d;p?q");

        let resolved = base.resolve(reference).unwrap();

        assert_eq!(resolved.0.text.as_ref(), expected, "{reference}");
    }
}

#[test]
fn references_are_resolved_against_a_url_without_path() {
    assert_eq!(
        url("http://a").resolve("g").unwrap().0.text.as_ref(),
        "http://a/g"
    );
    assert_eq!(
        url("http://a?q").resolve("?r").unwrap().0.text.as_ref(),
        "http://a?r"
    );
    assert_eq!(
        url("https://a/b").resolve("//c/d").unwrap().0.text.as_ref(),
        "https://c/d"
    );
}

#[test]
fn an_invalid_reference_is_rejected() {
    for reference in [
        "javascript:x",
        "file:///x",
        "http:g",
        "//u@h/",
        "//",
        "/a b",
        "/\u{e4}",
    ] {
        assert!(url("http://a/b").resolve(reference).is_err(), "{reference}");
    }
}
