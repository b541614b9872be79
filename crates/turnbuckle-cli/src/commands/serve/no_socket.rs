//! Where there are no Unix sockets.

use std::path::Path;

use turnbuckle_server::Server;

use super::settings::Settings;
use super::signals::Signals;
use crate::context::Context;
use crate::failure::{Failure, Result};

/// Says that there are none.
pub(super) async fn serve(
    _server: Server,
    _path: &Path,
    _signals: Signals,
    _settings: &Settings,
    _context: &Context,
) -> Result {
    Err(Failure::not_asked("this system has no Unix sockets").hint("--listen 127.0.0.1:8321"))
}
