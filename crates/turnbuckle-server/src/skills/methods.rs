//! The methods of the extension.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, json};
use turnbuckle_protocol::{
    RpcError, json,
    jsonrpc::Truncated,
    types::{
        PaginatedParams,
        skills::{EXTENSION, GetSkillParams, ReadDirectoryParams},
    },
};

use super::{index::SkillIndex, snapshot::SkillSnapshot};
use crate::{
    Context, Extension, ExtensionMethod, RequestError, catalog::PageRequest,
    server::extension::ExtensionResponse,
};

/// Returns the extension for clients.
pub(super) fn extension(index: &Arc<SkillIndex>) -> Extension {
    let settings = Map::from_iter([("directoryRead".to_owned(), true.into())]);
    Extension::new(EXTENSION)
        .settings(settings)
        .with(method("skills/list", index, list))
        .with(method("skills/get", index, get))
        .with(method("resources/directory/read", index, read_directory))
}

/// Creates a method that reads the current snapshot.
fn method<P: DeserializeOwned + Send + 'static>(
    name: &str,
    index: &Arc<SkillIndex>,
    respond: fn(&SkillSnapshot, &P, &Context) -> Result<Vec<u8>, RpcError>,
) -> ExtensionMethod {
    let index = index.clone();
    let respond = move |params: &str, cx: Context| {
        let params: P = json::from_str(params)?;
        let index = index.clone();
        let run: crate::request::BoxFuture<_> = Box::pin(async move {
            index.scan_if_stale(cx.server()).await;
            let written =
                respond(&index.snapshot(), &params, &cx).map_err(RequestError::protocol)?;
            Ok(ExtensionResponse::Encoded(
                written.into(),
                cx.server().list_cache(),
            ))
        });
        Ok(run)
    };
    ExtensionMethod::from_respond_fn(name.to_owned(), Arc::new(respond))
        .expect("the protocol defines no methods with these names")
}

fn list(
    snapshot: &SkillSnapshot,
    params: &PaginatedParams,
    cx: &Context,
) -> Result<Vec<u8>, RpcError> {
    let page = PageRequest::new(&cx.call, params.cursor.as_deref());
    let page = snapshot.skills.page(&page)?;
    Ok(page.into())
}

fn get(
    snapshot: &SkillSnapshot,
    params: &GetSkillParams,
    _: &Context,
) -> Result<Vec<u8>, RpcError> {
    let Some(entry) = snapshot.skills.get(&params.uri, None) else {
        return Err(unknown("skill", &params.uri));
    };
    let mut written = br#"{"skill":"#.to_vec();
    serde_json::to_writer(&mut written, &entry.0).expect("an entry has string keys");
    Ok(written)
}

fn read_directory(
    snapshot: &SkillSnapshot,
    params: &ReadDirectoryParams,
    cx: &Context,
) -> Result<Vec<u8>, RpcError> {
    let uri = params.uri.strip_suffix('/').unwrap_or(&params.uri);
    let Some(entries) = snapshot.folders.get(uri) else {
        return Err(unknown("folder", &params.uri));
    };
    // Each folder is a separate list.
    let page = entries.page_of_list(uri, &PageRequest::new(&cx.call, params.cursor.as_deref()))?;
    Ok(page.into())
}

fn unknown(what: &str, uri: &str) -> RpcError {
    let uri = Truncated(uri).to_string();
    RpcError::invalid_params(format!("unknown {what} `{uri}`")).with_data(json!({ "uri": uri }))
}
