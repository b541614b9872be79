//! Where there is no cryptography to verify tokens with.

use std::net::SocketAddr;

use turnbuckle_server::http::Http;

use super::authorization::Authorization;
use crate::failure::{Failure, Result};

/// Says that nobody could be let in.
pub(super) fn protect(_: Http, _: &Authorization, _: SocketAddr) -> Result<Http> {
    Err(Failure::not_asked(
        "this build of turnbuckle cannot verify tokens: it was built without the feature `tls`",
    ))
}
