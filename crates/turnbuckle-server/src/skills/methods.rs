//! The methods of the extension.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, json};
use turnbuckle_protocol::{
    RpcError, json,
    jsonrpc::Excerpt,
    types::{
        PaginatedParams,
        skills::{EXTENSION, GetSkillParams, ReadDirectoryParams},
    },
};

use super::{library::Library, shelf::Shelf};
use crate::{
    Context, Extension, ExtensionMethod, RequestError, catalog::Page, extension::Response,
};

/// The extension as clients see it.
pub(super) fn extension(library: &Arc<Library>) -> Extension {
    let settings = Map::from_iter([("directoryRead".to_owned(), true.into())]);
    Extension::new(EXTENSION)
        .settings(settings)
        .with(method("skills/list", library, list))
        .with(method("skills/get", library, get))
        .with(method("resources/directory/read", library, read_directory))
}

/// A method that is answered from what there is now.
fn method<P: DeserializeOwned + Send + 'static>(
    name: &str,
    library: &Arc<Library>,
    answer: fn(&Shelf, &P, &Context) -> Result<Vec<u8>, RpcError>,
) -> ExtensionMethod {
    let library = library.clone();
    let respond = move |params: &str, cx: Context| {
        let params: P = json::from_str(params)?;
        let library = library.clone();
        let run: crate::exchange::BoxFuture<_> = Box::pin(async move {
            library.look_lately(cx.server()).await;
            let written = answer(&library.shelf(), &params, &cx).map_err(RequestError::protocol)?;
            Ok(Response::Written(written.into(), cx.server().list_cache()))
        });
        Ok(run)
    };
    ExtensionMethod::responding(name.to_owned(), Arc::new(respond))
}

fn list(shelf: &Shelf, params: &PaginatedParams, cx: &Context) -> Result<Vec<u8>, RpcError> {
    let page = Page::of(&cx.call, params.cursor.as_deref());
    let page = shelf.skills.page(&page)?;
    Ok(page.into())
}

fn get(shelf: &Shelf, params: &GetSkillParams, _: &Context) -> Result<Vec<u8>, RpcError> {
    let Some(entry) = shelf.skills.get(&params.uri, None) else {
        return Err(unknown("skill", &params.uri));
    };
    let mut written = br#"{"skill":"#.to_vec();
    serde_json::to_writer(&mut written, &entry.0).expect("an entry has string keys");
    Ok(written)
}

fn read_directory(
    shelf: &Shelf,
    params: &ReadDirectoryParams,
    cx: &Context,
) -> Result<Vec<u8>, RpcError> {
    let uri = params.uri.strip_suffix('/').unwrap_or(&params.uri);
    let Some(inside) = shelf.folders.get(uri) else {
        return Err(unknown("folder", &params.uri));
    };
    // Each folder is a list of its own.
    let page = inside.page_of(uri, &Page::of(&cx.call, params.cursor.as_deref()))?;
    Ok(page.into())
}

fn unknown(what: &str, uri: &str) -> RpcError {
    let uri = Excerpt(uri).to_string();
    RpcError::invalid_params(format!("there is no {what} `{uri}`")).with_data(json!({ "uri": uri }))
}
