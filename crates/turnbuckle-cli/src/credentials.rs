//! Secrets that the user hands to a command: tokens, and the secret of a client.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::arguments;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::secret::Secret;

/// No secret is longer than this.
const MOST: u64 = 64 * 1024;

/// Returns the headers of the command line: those that were given as such, and the token.
pub(crate) fn headers(context: &Context) -> Result<Vec<(String, Secret)>> {
    let mut headers = context.options.headers.clone();
    let Some(token) = token(context)? else {
        return Ok(headers);
    };
    let names_us = |(name, _): &(String, Secret)| name.eq_ignore_ascii_case("authorization");
    if headers.iter().any(names_us) {
        return Err(Failure::not_asked(
            "a token and a header `Authorization` were given, and only one of them can be sent",
        ));
    }
    let bearer = Secret::new(format!("Bearer {}", token.reveal()));
    headers.push(("Authorization".to_owned(), bearer));
    Ok(headers)
}

/// Makes sure that no token was given for a server that would never see it.
pub(crate) fn ensure_none(context: &Context) -> Result {
    let given = &context.options.authorization;
    match given.token.is_none() && given.token_file.is_none() {
        true => Ok(()),
        false => Err(Failure::not_asked(
            "a token is sent by HTTP, and this server is not reached by it",
        )
        .hint("a program that is started takes its credentials from its environment")),
    }
}

fn token(context: &Context) -> Result<Option<Secret>> {
    let given = &context.options.authorization;
    match (&given.token, &given.token_file) {
        (Some(_), Some(_)) => Err(Failure::not_asked(
            "--token and --token-file were given, and only one token can be sent",
        )),
        (Some(token), None) => Ok(Some(token.clone())),
        (None, Some(file)) => {
            let read = arguments::token(&read(file, context)?);
            let token = read.map_err(|reason| unusable(file, &reason))?;
            Ok(Some(token))
        }
        (None, None) => Ok(None),
    }
}

/// Reads a file that holds a secret; `-` is stdin.
pub(crate) fn read(file: &Path, context: &Context) -> Result<String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().take(MOST).read_to_string(&mut text)
    } else {
        let opened = File::open(context.environment.cwd.join(file));
        opened.and_then(|open| {
            warn_of_others(file, &open, context);
            open.take(MOST).read_to_string(&mut text)
        })
    };
    read.map_err(|error| unusable(file, &error.to_string()))?;
    Ok(text)
}

/// Says why a secret cannot be used; never quotes what stands there.
pub(crate) fn unusable(file: &Path, reason: &str) -> Failure {
    let place = match file == Path::new("-") {
        true => "stdin".to_owned(),
        false => file.display().to_string(),
    };
    Failure::not_asked(format!("the secret of {place} cannot be used: {reason}"))
}

#[cfg(unix)]
fn warn_of_others(file: &Path, open: &File, context: &Context) {
    use std::os::unix::fs::PermissionsExt;

    use crate::failure::warning;

    let Ok(metadata) = open.metadata() else {
        return;
    };
    // A pipe, as `<(pass show token)` is one, is seen by nobody else.
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        let file = file.display();
        context.voice.say(&warning(&format!(
            "{file} is not for you alone; `chmod 600 {file}` makes it so"
        )));
    }
}

#[cfg(not(unix))]
fn warn_of_others(_: &Path, _: &File, _: &Context) {}
