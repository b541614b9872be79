//! The options by which a server is told who asks.

use std::path::PathBuf;

use clap::Args;

use crate::secret::Secret;

/// Who we are to a server.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Authorization")]
pub(crate) struct Authorization {
    /// Send this token; other users of this machine can see it, so --token-file is better
    #[arg(long, global = true, value_name = "TOKEN", value_parser = token)]
    pub(crate) token: Option<Secret>,

    /// Send the token that stands in this file; - is stdin
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,

    /// Be known to the authorization server by this id, instead of registering there
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) client_id: Option<String>,

    /// Show who we are by the secret in this file, which belongs to --client-id; - is stdin
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) client_secret_file: Option<PathBuf>,
}

/// Reads what can be sent as a token: visible characters, and not so many that no server would take them.
pub(crate) fn token(text: &str) -> Result<Secret, String> {
    const MOST: usize = 16 * 1024;
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".to_owned());
    }
    if text.len() > MOST {
        return Err(format!("it is longer than {MOST} bytes"));
    }
    // The text itself is never quoted: it may be a secret with a mistake.
    match text.bytes().all(|byte| byte.is_ascii_graphic()) {
        true => Ok(Secret::new(text)),
        false => Err("a token is one word of visible ASCII".to_owned()),
    }
}
