//! Passwords of databases, where other programs for PostgreSQL look for them.

use std::{io, path::Path};

use turnbuckle_text::Secret;

use crate::{
    environment::Environment,
    error::{CliError, Result},
};

/// What a password is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Login<'l> {
    pub(super) host: &'l str,
    pub(super) port: u16,
    pub(super) database: &'l str,
    pub(super) user: &'l str,
}

/// Returns the password of the variable `PGPASSWORD`, or of the file of `PGPASSFILE`, which is `~/.pgpass` by default.
pub(super) fn find(login: &Login<'_>, environment: &Environment) -> Result<Option<Secret>> {
    if let Some(password) = environment.var("PGPASSWORD") {
        return Ok(Some(Secret::new(password)));
    }
    let named = environment
        .var("PGPASSFILE")
        .map(|file| environment.cwd.join(file));
    let default = || Some(environment.home.as_ref()?.join(".pgpass"));
    let Some(file) = named.or_else(default) else {
        return Ok(None);
    };
    match std::fs::read_to_string(&file) {
        Ok(text) => {
            check_permissions(&file)?;
            Ok(find_line(&text, login))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(CliError::could_not_run(format!(
            "cannot read {}: {error}",
            file.display()
        ))),
    }
}

/// Returns the password of the first matching line: `host:port:database:user:password`, where `*` matches everything.
fn find_line(text: &str, login: &Login<'_>) -> Option<Secret> {
    let host = if login.host.starts_with('/') {
        "localhost"
    } else {
        login.host
    };
    let wanted = [host, &login.port.to_string(), login.database, login.user];
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let mut fields = fields(line);
        let password = match fields.len() {
            5 => fields.pop()?,
            _ => continue,
        };
        let mut pairs = fields.iter().zip(wanted);
        if pairs.all(|(field, wanted)| field == "*" || field == wanted) {
            return Some(Secret::new(password));
        }
    }
    None
}

/// Splits a line at colons. A backslash makes the next character a part of its field.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is always a field");
        match character {
            ':' => fields.push(String::new()),
            '\\' => field.extend(characters.next()),
            other => field.push(other),
        }
    }
    fields
}

#[cfg(unix)]
fn check_permissions(file: &Path) -> Result {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = std::fs::metadata(file)?;
    if metadata.permissions().mode() & 0o077 == 0 {
        return Ok(());
    }
    let error = format!("{} can be read by other users", file.display());
    Err(CliError::could_not_run(error).hint(format!("run: chmod 600 {}", file.display())))
}

#[cfg(not(unix))]
fn check_permissions(_file: &Path) -> Result {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_matching_line_has_the_password() {
        let text = "# comment\n\
                    other:*:*:*:one\n\
                    db.example:5432:memory:ada:t\\:w\\\\o\n\
                    db.example:*:*:*:three\n\
                    localhost:*:*:bob:four\n\
                    broken:line\n";
        for (host, database, user, expected) in [
            ("db.example", "memory", "ada", Some("t:w\\o")),
            ("db.example", "memory", "bob", Some("three")),
            ("/run/postgresql", "memory", "bob", Some("four")),
            ("localhost", "memory", "ada", None),
        ] {
            let login = Login {
                host,
                port: 5432,
                database,
                user,
            };
            let found = find_line(text, &login);
            assert_eq!(found.as_ref().map(Secret::expose), expected, "{login:?}");
        }
    }
}
