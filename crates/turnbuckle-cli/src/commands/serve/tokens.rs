//! The file of tokens: who is known by what.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use turnbuckle_auth::Secret;
use turnbuckle_protocol::Principal;

use crate::failure::{Failure, Result};

/// Those who are known by a file are vouched for by this server itself.
const ISSUER: &str = "token-file";

/// Whoever has a token without a name.
const NAMELESS: &str = "user";

/// Bytes that the file may have.
const MOST: u64 = 1024 * 1024;

/// Characters that a token has at least; 16 random ones are more than anybody can try.
const LEAST: usize = 16;

/// A token, and whose it is.
#[allow(dead_code, reason = "a build without cryptography lets nobody in")]
#[derive(Debug)]
pub(super) struct Known {
    pub(super) token: Secret,
    pub(super) principal: Principal,
}

/// Reads the file, if nobody else can.
pub(super) fn read(path: &Path) -> Result<Vec<Known>> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let about = file.metadata().map_err(|error| unreadable(path, &error))?;
    check_private(path, &about)?;
    let mut text = String::new();
    file.take(MOST)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(path, &error))?;
    let known = parse(&text).map_err(|problem| {
        Failure::not_asked(format!("{}: {problem}", path.display()))
            .hint("a line is TOKEN [NAME [SCOPE …]]; `openssl rand -hex 32` makes a token")
    })?;
    if known.is_empty() {
        return Err(Failure::not_asked(format!(
            "there is no token in {}",
            path.display()
        )));
    }
    Ok(known)
}

/// Everybody who can read the file is everybody whom it lets in.
#[cfg(unix)]
fn check_private(path: &Path, about: &fs::Metadata) -> Result {
    use std::os::unix::fs::PermissionsExt as _;

    let others = about.permissions().mode() & 0o077;
    if others == 0 || !about.is_file() {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::not_asked(format!(
        "others on this machine can read the tokens in {path}"
    ))
    .hint(format!("chmod 600 {path}")))
}

#[cfg(not(unix))]
fn check_private(_path: &Path, _about: &fs::Metadata) -> Result {
    Ok(())
}

/// Reads the lines; what is wrong is said without the token.
fn parse(text: &str) -> std::result::Result<Vec<Known>, String> {
    let mut known: Vec<Known> = Vec::new();
    for (line, words) in (1..).zip(text.lines()) {
        let mut words = words.split_whitespace();
        let Some(token) = words.next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        if token.len() < LEAST {
            return Err(format!(
                "the token in line {line} can be guessed: it has less than {LEAST} characters"
            ));
        }
        if !token.bytes().all(is_of_tokens) {
            return Err(format!(
                "the token in line {line} has characters that no token can have"
            ));
        }
        let mut principal = Principal::new(ISSUER, words.next().unwrap_or(NAMELESS));
        principal.scopes = words.map(str::to_owned).collect();
        if known.iter().any(|other| other.token.expose() == token) {
            return Err(format!("the token in line {line} is there already"));
        }
        known.push(Known {
            token: Secret::new(token),
            principal,
        });
    }
    Ok(known)
}

/// What RFC 6750 (section 2.1) lets a token have.
fn is_of_tokens(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte)
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::not_asked(format!("{} cannot be read: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_token_and_perhaps_a_name_and_scopes() {
        let text = "# agents\n\n0123456789abcdef\n0123456789abcdeg ada\n  0123456789abcdeh bo read write\n";

        let known = parse(text).unwrap();

        let named = known.iter().map(|known| &*known.principal.subject);
        assert_eq!(Vec::from_iter(named), ["user", "ada", "bo"]);
        assert_eq!(known[2].token.expose(), "0123456789abcdeh");
        assert_eq!(known[2].principal.scopes.len(), 2);
        assert!(!format!("{known:?}").contains("0123456789"));
    }

    #[test]
    fn bad_tokens_are_named_by_their_line_alone() {
        for (text, problem) in [
            ("secret ada", "line 1 can be guessed"),
            ("\n0123456789abcdef,ada", "line 2 has characters"),
            (
                "0123456789abcdef\n0123456789abcdef bo",
                "line 2 is there already",
            ),
        ] {
            let said = parse(text).unwrap_err();
            assert!(said.contains(problem), "{said}");
            assert!(!said.contains("secret") && !said.contains("0123"), "{said}");
        }
    }
}
