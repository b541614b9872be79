//! A token in a file, which other programs may replace.

use std::{
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
    sync::Mutex,
    time::SystemTime,
};

use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep, CredentialProvider, Credentials, RetryDecision, Secret,
    UnauthorizedResponse, UnsignedRequest,
};
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_text::url::HttpUrl;

use crate::{
    cli,
    error::{CliError, Result},
    lock,
    target::file_text::is_readable_by_others,
};

/// The maximum size of the file.
const MAX_BYTES: u64 = 64 * 1024;

/// Sends the token of a file to one server. The file is read again when it changes.
pub(super) struct TokenFile {
    path: PathBuf,
    server_url: String,
    token: Mutex<ReadToken>,
}

/// The token, and the state of the file that it is from.
struct ReadToken {
    bearer: Secret,
    modified: SystemTime,
    generation: u64,
}

impl TokenFile {
    /// Reads the token.
    pub(super) fn open(path: &Path, server_url: &str) -> Result<Self> {
        let read = read(path, 1);
        let token = read.map_err(|reason| CliError::could_not_run(describe(path, &reason)))?;
        Ok(Self {
            path: path.to_owned(),
            server_url: server_url.to_owned(),
            token: Mutex::new(token),
        })
    }

    /// Reads the file again if it has changed, and returns the credentials.
    fn current(&self) -> std::result::Result<Credentials, AuthorizationError> {
        let mut token = lock(&self.token);
        let modified = std::fs::metadata(&self.path).and_then(|found| found.modified());
        if modified.is_ok_and(|modified| modified != token.modified) {
            *token = read(&self.path, token.generation + 1).map_err(|reason| {
                let reason = describe(&self.path, &reason);
                AuthorizationError::new(AuthorizationStep::Use, reason)
            })?;
        }
        let headers = vec![("authorization", token.bearer.clone())];
        Ok(Credentials::new(token.generation, headers))
    }
}

fn describe(path: &Path, reason: &str) -> String {
    format!("cannot use the token in {}: {reason}", path.display())
}

fn read(path: &Path, generation: u64) -> std::result::Result<ReadToken, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if is_readable_by_others(&metadata) {
        return Err("other users can read the file; run `chmod 600` for it".to_owned());
    }
    let mut text = String::new();
    let size = file.take(MAX_BYTES).read_to_string(&mut text);
    let size = size.and_then(|size| match size as u64 {
        MAX_BYTES => Err(io::Error::other("the file is too large")),
        _ => metadata.modified(),
    });
    let token = cli::parse_token(&text)?;
    Ok(ReadToken {
        bearer: Secret::new(format!("Bearer {}", token.expose())),
        modified: size.map_err(|error| error.to_string())?,
        generation,
    })
}

impl CredentialProvider for TokenFile {
    fn credentials<'a>(
        &'a self,
        request: UnsignedRequest<'a>,
    ) -> BoxFuture<'a, std::result::Result<Credentials, AuthorizationError>> {
        Box::pin(async move {
            let is_server = match (
                HttpUrl::parse(&self.server_url),
                HttpUrl::parse(request.url),
            ) {
                (Ok(server), Ok(url)) => server.is_same_origin(&url),
                _ => false,
            };
            if !is_server {
                let reason = "the token is not for the origin that the request goes to";
                return Err(AuthorizationError::new(AuthorizationStep::Use, reason));
            }
            self.current()
        })
    }

    fn on_unauthorized<'a>(
        &'a self,
        response: UnauthorizedResponse<'a>,
    ) -> BoxFuture<'a, std::result::Result<RetryDecision, AuthorizationError>> {
        Box::pin(async move {
            let current = self.current()?;
            Ok(if current.generation == response.generation {
                RetryDecision::GiveUp
            } else {
                RetryDecision::Retry
            })
        })
    }
}
