//! Parsing of the `Authorization` header.

/// The authentication scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenScheme {
    Bearer,
    Dpop,
}

/// An access token and its scheme.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct AuthorizationHeader<'a> {
    pub(super) scheme: TokenScheme,
    pub(super) token: &'a str,
}

/// The header is missing a token, ambiguous or repeated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MalformedHeader;

impl<'a> AuthorizationHeader<'a> {
    /// Parses the header. Returns `None` if there is none, or if the scheme is not `Bearer` or `DPoP`.
    pub(super) fn parse(headers: &[&'a str]) -> Result<Option<Self>, MalformedHeader> {
        let header = match headers {
            [] => return Ok(None),
            [header] => header.trim_matches([' ', '\t']),
            _ => return Err(MalformedHeader),
        };
        let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
        let scheme = match scheme {
            "" => return Err(MalformedHeader),
            scheme if scheme.eq_ignore_ascii_case("Bearer") => TokenScheme::Bearer,
            scheme if scheme.eq_ignore_ascii_case("DPoP") => TokenScheme::Dpop,
            _ => return Ok(None),
        };
        let token = token.trim_start_matches(' ');
        if is_token(token) {
            Ok(Some(Self { scheme, token }))
        } else {
            Err(MalformedHeader)
        }
    }
}

/// Returns whether the text has the syntax of a token (`b64token`, RFC 6750).
fn is_token(text: &str) -> bool {
    let letters = text.trim_end_matches('=');
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte);
    !letters.is_empty() && letters.bytes().all(is_letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_is_read_in_any_case() {
        for (header, scheme) in [
            ("Bearer a.b-c", TokenScheme::Bearer),
            ("bearer a.b-c", TokenScheme::Bearer),
            ("BEARER   a.b-c ", TokenScheme::Bearer),
            ("dpop a.b-c", TokenScheme::Dpop),
        ] {
            let credentials = AuthorizationHeader::parse(&[header]).unwrap().unwrap();
            assert!(
                credentials
                    == AuthorizationHeader {
                        scheme,
                        token: "a.b-c"
                    },
                "{header}"
            );
        }
    }

    #[test]
    fn ambiguous_headers_are_malformed() {
        for headers in [
            &["Bearer a", "Bearer a"][..],
            &["Bearer a", "Basic b"],
            &[""],
            &["Bearer"],
            &["Bearer "],
            &["Bearer ="],
            &["Bearer a b"],
            &["Bearer a,b"],
            &["Bearer a, Bearer b"],
            &["Bearer \"a\""],
            &["Bearer \u{e4}"],
            &["Bearer a\0"],
            &["Bearer token=\"a\""],
        ] {
            assert!(
                AuthorizationHeader::parse(headers) == Err(MalformedHeader),
                "{headers:?}"
            );
        }
    }

    #[test]
    fn another_scheme_is_a_missing_token() {
        for headers in [&[][..], &["Basic YTpi"], &["Bearerx a"], &["Negotiate"]] {
            assert!(
                AuthorizationHeader::parse(headers) == Ok(None),
                "{headers:?}"
            );
        }
    }
}
