//! The server that is served.

use turnbuckle_context::{Library, Owners, Trace, debug_log_resources, tools};
use turnbuckle_server::Server;

use super::settings::Settings;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::memory;

/// Puts the context server together, for the user who runs it.
pub(super) fn server(settings: &Settings, context: &Context) -> Result<Server> {
    let library = library(settings)?;
    let owners = Owners::One(memory::owner(&context.environment));
    let _ = library;
    let trace = Trace::new(owners);
    let mut server = Server::new("turnbuckle", env!("CARGO_PKG_VERSION")).layer(trace.clone());
    for tool in tools::debug::all(&trace) {
        server = server.tool(tool);
    }
    for resource in debug_log_resources(&trace) {
        server = server.resource(resource);
    }
    Ok(server)
}

/// The library in the folder for data, which is seen to be usable before anybody relies on it.
fn library(settings: &Settings) -> Result<Library> {
    let library = Library::new(&settings.data);
    library.prepare().map_err(|error| {
        Failure::from(error).hint("--data DIR keeps everything in another folder")
    })?;
    Ok(match settings.roots.is_empty() {
        true => library,
        false => library.within(settings.roots.clone()),
    })
}
