//! Secrets on the command line: tokens and client secrets.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use turnbuckle_auth::Secret;

use crate::{
    cli,
    context::CommandContext,
    error::{CliError, Result},
};

/// The largest secret that is read, in bytes.
const MAX_SECRET_BYTES: u64 = 64 * 1024;

/// Returns the headers of the command line, including the token as `Authorization`.
pub(crate) fn headers(context: &CommandContext) -> Result<Vec<(String, Secret)>> {
    let mut headers = context.options.headers.clone();
    let Some(token) = token(context)? else {
        return Ok(headers);
    };
    let is_authorization =
        |(name, _): &(String, Secret)| name.eq_ignore_ascii_case("authorization");
    if headers.iter().any(is_authorization) {
        return Err(CliError::could_not_run(
            "--token and --token-file cannot be combined with an `Authorization` header",
        ));
    }
    let bearer = Secret::new(format!("Bearer {}", token.expose()));
    headers.push(("Authorization".to_owned(), bearer));
    Ok(headers)
}

/// Returns an error if a token was given for a server that is not reached by HTTP.
pub(crate) fn reject_token_options(context: &CommandContext) -> Result {
    let given = &context.options.authorization;
    if given.token.is_none() && given.token_file.is_none() {
        Ok(())
    } else {
        Err(
            CliError::could_not_run("a token can only be sent to a server on HTTP")
                .hint("pass credentials to a program in environment variables"),
        )
    }
}

fn token(context: &CommandContext) -> Result<Option<Secret>> {
    let given = &context.options.authorization;
    match (&given.token, &given.token_file) {
        (Some(_), Some(_)) => Err(CliError::could_not_run(
            "--token cannot be combined with --token-file",
        )),
        (Some(token), None) => Ok(Some(token.clone())),
        (None, Some(file)) => {
            let read = cli::parse_token(&read_secret(file, context)?);
            let token = read.map_err(|reason| invalid_secret(file, &reason))?;
            Ok(Some(token))
        }
        (None, None) => Ok(None),
    }
}

/// Reads a file with a secret; `-` is stdin.
pub(crate) fn read_secret(file: &Path, context: &CommandContext) -> Result<String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin()
            .lock()
            .take(MAX_SECRET_BYTES)
            .read_to_string(&mut text)
    } else {
        let opened = File::open(context.environment.cwd.join(file));
        opened.and_then(|open| {
            warn_if_readable_by_others(file, &open, context);
            open.take(MAX_SECRET_BYTES).read_to_string(&mut text)
        })
    };
    read.map_err(|error| invalid_secret(file, &error.to_string()))?;
    Ok(text)
}

/// Returns the error for a secret that cannot be used. It never quotes the secret.
pub(crate) fn invalid_secret(file: &Path, reason: &str) -> CliError {
    let name = if file == Path::new("-") {
        "stdin".to_owned()
    } else {
        file.display().to_string()
    };
    CliError::could_not_run(format!("cannot use the secret in {name}: {reason}"))
}

#[cfg(unix)]
fn warn_if_readable_by_others(file: &Path, open: &File, context: &CommandContext) {
    use std::os::unix::fs::PermissionsExt;

    use crate::error::warning;

    let Ok(metadata) = open.metadata() else {
        return;
    };
    // A pipe, such as `<(pass show token)`, is not readable by others.
    if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
        let file = file.display();
        context.ui.print(&warning(&format!(
            "other users can read {file}; run `chmod 600 {file}`"
        )));
    }
}

#[cfg(not(unix))]
fn warn_if_readable_by_others(_: &Path, _: &File, _: &CommandContext) {}
