//! What a caller shows: the `Authorization` header.

/// How a token is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    Bearer,
    Dpop,
}

/// A token, and how it was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Presented<'a> {
    pub(super) scheme: Scheme,
    pub(super) token: &'a str,
}

/// A header that nobody can read in one way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl<'a> Presented<'a> {
    /// Reads the header; nothing if there is none, or if it is of a scheme that is not for tokens.
    pub(super) fn read(headers: &[&'a str]) -> Result<Option<Self>, Malformed> {
        let header = match headers {
            [] => return Ok(None),
            [header] => header.trim_matches([' ', '\t']),
            _ => return Err(Malformed),
        };
        let (scheme, token) = header.split_once(' ').unwrap_or((header, ""));
        let scheme = match scheme {
            "" => return Err(Malformed),
            scheme if scheme.eq_ignore_ascii_case("Bearer") => Scheme::Bearer,
            scheme if scheme.eq_ignore_ascii_case("DPoP") => Scheme::Dpop,
            _ => return Ok(None),
        };
        let token = token.trim_start_matches(' ');
        match is_token(token) {
            true => Ok(Some(Self { scheme, token })),
            false => Err(Malformed),
        }
    }
}

/// What RFC 6750 lets a token be made of.
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
            ("Bearer a.b-c", Scheme::Bearer),
            ("bearer a.b-c", Scheme::Bearer),
            ("BEARER   a.b-c ", Scheme::Bearer),
            ("dpop a.b-c", Scheme::Dpop),
        ] {
            let presented = Presented::read(&[header]).unwrap().unwrap();
            assert!(
                presented
                    == Presented {
                        scheme,
                        token: "a.b-c"
                    },
                "{header}"
            );
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_malformed() {
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
            assert!(Presented::read(headers) == Err(Malformed), "{headers:?}");
        }
    }

    #[test]
    fn another_scheme_is_as_good_as_none() {
        for headers in [&[][..], &["Basic YTpi"], &["Bearerx a"], &["Negotiate"]] {
            assert!(Presented::read(headers) == Ok(None), "{headers:?}");
        }
    }
}
