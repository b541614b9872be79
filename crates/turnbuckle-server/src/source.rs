//! Resources that come and go by themselves, such as the files of a folder.

use std::{any::Any, sync::Arc};

use crate::{CacheHint, Contents, Context, RequestError, Resource, Server, exchange::BoxFuture};

/// A place that resources are kept in beside the catalog. It is looked at again before it is served.
pub(crate) trait Source: Any + Send + Sync {
    /// Says whether addresses like this one are read here, and nowhere else.
    fn owns(&self, uri: &str) -> bool;
    /// Says whether there was a resource or a folder at this address when the source was last looked at.
    fn has(&self, uri: &str) -> bool;
    /// What `resources/list` shows of it.
    fn listed(&self) -> Arc<Vec<Arc<Resource>>>;
    /// For how long and by whom contents may be kept.
    fn cache(&self) -> CacheHint;
    /// Looks again, unless that was done a moment ago.
    fn freshen(self: Arc<Self>, server: Server) -> BoxFuture<()>;
    /// Reads a resource.
    fn read(self: Arc<Self>, uri: &str, cx: Context) -> BoxFuture<Result<Contents, RequestError>>;
    /// Begins to look after changes that nobody asks for: someone is there who may want to hear of them.
    fn attend(self: Arc<Self>, server: &Server);
}
