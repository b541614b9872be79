//! Stub for builds without the feature `tls`: they cannot log in.

use bytes::Bytes;
use http::{Request, Response};
use turnbuckle_auth::Secret;
use turnbuckle_gateway::Upstream;
use turnbuckle_protocol::authenticator::BoxFuture;
use turnbuckle_server::http::WebPages;

use crate::{
    context::CommandContext,
    error::{CliError, Result},
    listener::auth::CallerAuth,
    logins::MachineClient,
    target::config_files::HttpEntry,
};

/// The pages, of which there are none.
#[derive(Clone, Debug)]
pub(super) enum ConnectPages {}

impl ConnectPages {
    pub(super) fn for_callers(
        _: Option<&CallerAuth>,
        _: Option<(String, Option<Secret>)>,
    ) -> Result<Self> {
        Err(CliError::could_not_run("this build cannot log in")
            .hint("build with the feature `tls`"))
    }

    pub(super) fn set_origin(&self, _: String) {
        match *self {}
    }

    pub(super) fn upstream(
        &self,
        _: &str,
        _: &HttpEntry,
        _: &MachineClient,
        _: &CommandContext,
    ) -> Result<Upstream> {
        match *self {}
    }
}

impl WebPages for ConnectPages {
    fn has_path(&self, _: &str) -> bool {
        match *self {}
    }

    fn respond(&self, _: Request<()>) -> BoxFuture<'_, Response<Bytes>> {
        match *self {}
    }
}
