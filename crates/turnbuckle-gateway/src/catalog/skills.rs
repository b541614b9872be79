//! Skills of all upstream servers: the extension `io.modelcontextprotocol/skills`.
//!
//! A skill is a folder of resources, so its URI names its server, as that of a resource does. Of equal URIs that of the
//! first server is used: a skill of another server with the same URI is left out, because clients compare what they read
//! under a URI with the digests of the skill.

use std::{sync::Arc, time::Duration};

use serde_json::{json, value::RawValue};
use turnbuckle_protocol::{
    RpcError, json as parser,
    jsonrpc::{RawObject, Truncated, code},
    types::skills::EXTENSION,
};
use turnbuckle_server::relay::RelayedRequest;

use crate::{
    calls::TargetName,
    catalog::lists::{cursor, unknown_cursor},
    convert::ListKind,
    gateway::{GatewayState, SERVER_TIMEOUT},
    lock,
    policy::AccessError,
    raw_json::{ObjectWriter, edit, quote},
    upstream::UpstreamServer,
};

const LIST: &str = "skills/list";
const READ_DIRECTORY: &str = "resources/directory/read";
/// Lifetime of a cursor.
const CURSOR_LIFETIME: Duration = Duration::from_secs(3600);

/// A page of the skills of one server.
struct SkillPage {
    skills: Vec<String>,
    next: Option<String>,
}

impl GatewayState {
    /// Returns whether a method belongs to the skills of a server.
    pub(crate) fn is_skill_method(&self, method: &str) -> bool {
        matches!(method, LIST | "skills/get" | READ_DIRECTORY)
            && self.servers().iter().any(has_skills)
    }

    /// Handles a method of the extension.
    pub(crate) async fn handle_skills(
        self: &Arc<Self>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        if request.method() == LIST {
            return self.list_skills(request).await;
        }
        let params = request.parsed_params();
        let missing = || RpcError::invalid_params("`uri` is missing");
        let uri = params.string("uri")?.ok_or_else(missing)?.into_owned();
        let is_directory = request.method() == READ_DIRECTORY;
        let mut error = unknown(&uri);
        for server in self.servers_of_skill(&uri, is_directory, request).await {
            match self.relay_skill(&server, &uri, is_directory, request).await {
                // Another server may have it, without listing it.
                Err(failure) if failure.code == code::INVALID_PARAMS => error = failure,
                outcome => return outcome,
            }
        }
        Err(error)
    }

    async fn relay_skill(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        uri: &str,
        is_directory: bool,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        // Patterns are those of resources, so that a directory is what is below it.
        let guarded = if is_directory {
            below(uri)
        } else {
            uri.to_owned()
        };
        let access = self.authorize(server, ListKind::Resources, &guarded, request);
        match access.await {
            Ok(()) => {}
            Err(AccessError::Denied) => return Err(unknown(uri)),
            Err(AccessError::Error(error)) => return Err(error),
        }
        let target = TargetName {
            member: "uri",
            value: quote(uri),
            original: uri.to_owned(),
        };
        let result = self.relay_call(server, request, Some(&target)).await?;
        if !is_directory {
            return Ok(result);
        }
        let permits = |entry: &str, uri: &str| {
            let is_directory = entry.contains("inode/directory");
            let policy = &server.policy;
            policy.permits(ListKind::Resources, uri)
                || is_directory && policy.permits(ListKind::Resources, &below(uri))
        };
        with_permitted(&result, "resources", permits)
    }

    /// Returns the servers that can have a skill, or a directory of one: the first that lists it, or else all.
    async fn servers_of_skill(
        self: &Arc<Self>,
        uri: &str,
        is_directory: bool,
        request: &RelayedRequest,
    ) -> Vec<Arc<UpstreamServer>> {
        let servers = self.servers();
        let with_skills: Vec<_> = servers.iter().filter(|server| has_skills(server)).collect();
        if servers.len() == 1 {
            return with_skills.into_iter().cloned().collect();
        }
        self.load_uris(request).await;
        let listing = {
            let resources = lock(&self.catalog.resources);
            let lists = |server: &Arc<UpstreamServer>, uri: &str| {
                resources.holders(uri).contains(&server.settings.name)
            };
            let below = below(uri);
            let manifest = format!("{below}SKILL.md");
            let mut servers = servers.iter();
            if is_directory {
                let holds = servers.clone().find(|server| lists(server, &manifest));
                holds.or_else(|| servers.find(|server| resources.has_below(server.name(), &below)))
            } else {
                servers.find(|server| lists(server, uri))
            }
            .cloned()
        };
        match listing {
            Some(server) if has_skills(&server) => vec![server],
            // A resource of a server without skills.
            Some(_) => Vec::new(),
            None => with_skills.into_iter().cloned().collect(),
        }
    }

    /// Returns a page of the skills of all servers.
    async fn list_skills(self: &Arc<Self>, request: &RelayedRequest) -> Result<String, RpcError> {
        let servers = self.servers();
        if let Some(server) = servers.only() {
            let page = self.relay_call(server, request, None).await?;
            return self.with_shown_skills(server, &page);
        }
        let params = request.parsed_params();
        let (mut first, mut cursor) = match cursor(&params)? {
            Some(cursor) => {
                let (server, cursor) = open_cursor(request, &cursor).ok_or_else(unknown_cursor)?;
                (Some(server), Some(cursor))
            }
            None => (None, None),
        };
        self.load_uris(request).await;
        let mut skills = Vec::new();
        for server in servers.iter().filter(|server| has_skills(server)) {
            if first.as_ref().is_some_and(|first| first != server.name()) {
                continue;
            }
            first = None;
            let page = self.skill_page(server, cursor.take(), request);
            let page = match tokio::time::timeout(SERVER_TIMEOUT, page).await {
                Ok(Ok(page)) => page,
                failed => {
                    let reason = failed.err().map_or("it failed", |_| "it did not respond");
                    tracing::warn!(server = server.name(), reason, "skills are left out");
                    continue;
                }
            };
            skills.extend(page.skills);
            if let Some(next) = page.next {
                return self.skill_list(
                    &skills,
                    Some(seal_cursor(request, server, &next)),
                    request,
                );
            }
        }
        if first.is_some() {
            return Err(unknown_cursor());
        }
        self.skill_list(&skills, None, request)
    }

    /// Returns a page of a server's skills without those that clients must not see.
    fn with_shown_skills(&self, server: &UpstreamServer, page: &str) -> Result<String, RpcError> {
        let is_shown = |_: &str, uri: &str| {
            server.policy.permits(ListKind::Resources, uri)
                && self.shown_uri(ListKind::Resources, server, uri) == uri
        };
        with_permitted(page, "skills", is_shown)
    }

    fn skill_list(
        &self,
        skills: &[String],
        next: Option<String>,
        request: &RelayedRequest,
    ) -> Result<String, RpcError> {
        let mut result = ObjectWriter::new();
        result.member("skills", &format!("[{}]", skills.join(",")));
        if let Some(next) = next {
            result.string("nextCursor", &next);
        }
        self.own_result(&result.finish(), request)
    }

    /// Requests a page of a server's skills.
    async fn skill_page(
        self: &Arc<Self>,
        server: &Arc<UpstreamServer>,
        cursor: Option<String>,
        request: &RelayedRequest,
    ) -> Result<SkillPage, RpcError> {
        let params = request.parsed_params();
        let mut sent = ObjectWriter::new();
        for (name, value) in params.members().filter(|(name, _)| name != "cursor") {
            sent.member(&name, value);
        }
        if let Some(cursor) = &cursor {
            sent.string("cursor", cursor);
        }
        let request = request.with_params(&sent.finish())?;
        let page = self.relay_call(server, &request, None).await?;
        let page = self.with_shown_skills(server, &page)?;
        let page = RawObject::parse(&page)?;
        let skills: Vec<&RawValue> =
            parser::from_str(page.get("skills").unwrap_or("[]")).map_err(RpcError::from)?;
        let next = page.string("nextCursor")?.map(String::from);
        Ok(SkillPage {
            skills: skills
                .into_iter()
                .map(|skill| skill.get().to_owned())
                .collect(),
            next: next.filter(|next| Some(next) != cursor.as_ref()),
        })
    }
}

/// Returns whether a server has declared the extension.
fn has_skills(server: &Arc<UpstreamServer>) -> bool {
    let info = server.info.load();
    info.as_ref().is_some_and(|info| {
        let extensions = info.capabilities.extensions.as_ref();
        extensions.is_some_and(|extensions| extensions.contains_key(EXTENSION))
    })
}

/// Returns the start of the URIs in a directory.
fn below(directory: &str) -> String {
    format!("{}/", directory.strip_suffix('/').unwrap_or(directory))
}

/// Returns a result with those entries of a list that `permits` accepts, by their text and URI.
fn with_permitted(
    result: &str,
    member: &str,
    permits: impl Fn(&str, &str) -> bool,
) -> Result<String, RpcError> {
    let object = RawObject::parse(result)?;
    let list: Vec<&RawValue> =
        parser::from_str(object.get(member).unwrap_or("[]")).map_err(RpcError::from)?;
    let is_permitted = |entry: &&str| {
        let object = RawObject::parse(entry).ok();
        let uri = object.and_then(|object| object.string("uri").ok()?.map(String::from));
        uri.is_some_and(|uri| permits(entry, &uri))
    };
    let all = list.iter().map(|entry| entry.get());
    let permitted: Vec<_> = all.filter(is_permitted).collect();
    if permitted.len() == list.len() {
        return Ok(result.to_owned());
    }
    edit(
        result,
        &[],
        &[(member, format!("[{}]", permitted.join(",")))],
    )
}

fn seal_cursor(request: &RelayedRequest, server: &UpstreamServer, cursor: &str) -> String {
    let value = json!([server.name(), cursor]).to_string();
    request.seal(value.as_bytes(), LIST, CURSOR_LIFETIME)
}

/// Returns the server of a cursor, and the cursor that it uses.
fn open_cursor(request: &RelayedRequest, cursor: &str) -> Option<(String, String)> {
    let value = request.open(cursor, LIST)?;
    serde_json::from_slice(&value).ok()
}

fn unknown(uri: &str) -> RpcError {
    let uri = Truncated(uri).to_string();
    RpcError::invalid_params(format!("no server has a skill `{uri}`"))
}
