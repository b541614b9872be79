//! The methods of the protocol, one function each.

use std::collections::BTreeMap;
use std::future::ready;

use serde::Serialize;
use turnbuckle_protocol::method::{self, Method};
use turnbuckle_protocol::types::{
    CompleteParams, CompleteResult, Completion, EmptyParams, EmptyResult, GetPromptParams,
    GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, LogLevel, Prompt, ReadResourceParams, ReadResourceResult, Resource,
    ResourceTemplate, SetLevelParams, SubscribeParams, Tool,
};

use super::{Beside, Client};
use crate::cache::{Hints, Origin};
use crate::call::{Call, Options};
use crate::error::CallError;
use crate::lowered::Lowered;
use crate::pages::Pages;
use crate::tools::{ToolCall, ToolOutput};

impl Client {
    /// Calls a tool. Its arguments are anything that becomes a JSON object.
    pub fn call_tool(
        &self,
        name: impl Into<String>,
        arguments: impl Serialize,
    ) -> Call<ToolOutput> {
        match ToolCall::new(name, &arguments) {
            Ok(call) => Call::new(self, move |client: Client, options: Options| async move {
                client.call_as_known(&call, &options).await
            }),
            Err(error) => Call::new(self, |_, _| ready(Err(error))),
        }
    }

    /// Lists the tools, page by page.
    pub fn tools(&self) -> Pages<Tool> {
        self.pages(&method::TOOLS_LIST, |client, cursor| {
            let page = client.list_tools(cursor);
            async move { page.await.map(|page| (page.tools, page.next_cursor)) }
        })
    }

    /// Lists one page of tools.
    ///
    /// On HTTP since 2026-07-28, a tool whose marks for headers are wrong is left out, as it cannot be called;
    /// [`Oddity::BadMark`](crate::Oddity::BadMark) says why. A tool that is not as it was listed before is reported by
    /// [`Oddity::ToolChanged`](crate::Oddity::ToolChanged).
    pub fn list_tools(&self, cursor: Option<String>) -> Call<ListToolsResult> {
        Call::new(self, async move |client: Client, options: Options| {
            let changes = client.inner.tools.changes();
            let page = client.ask_for_page(&method::TOOLS_LIST, cursor, &options);
            let (mut page, origin): (ListToolsResult, _) = page.await?;
            match origin {
                Origin::Server => client.learn_tools(&mut page.tools, changes),
                Origin::Cache => client.sort_out_tools(&mut page.tools),
            }
            Ok(page)
        })
    }

    /// Lists the resources, page by page.
    pub fn resources(&self) -> Pages<Resource> {
        self.pages(&method::RESOURCES_LIST, |client, cursor| {
            let page = client.list_resources(cursor);
            async move { page.await.map(|page| (page.resources, page.next_cursor)) }
        })
    }

    /// Lists one page of resources.
    pub fn list_resources(&self, cursor: Option<String>) -> Call<ListResourcesResult> {
        self.page(&method::RESOURCES_LIST, cursor)
    }

    /// Lists the templates of resources, page by page.
    pub fn resource_templates(&self) -> Pages<ResourceTemplate> {
        self.pages(&method::RESOURCES_TEMPLATES_LIST, |client, cursor| {
            let page = client.list_resource_templates(cursor);
            async move {
                page.await
                    .map(|page| (page.resource_templates, page.next_cursor))
            }
        })
    }

    /// Lists one page of templates of resources.
    pub fn list_resource_templates(
        &self,
        cursor: Option<String>,
    ) -> Call<ListResourceTemplatesResult> {
        self.page(&method::RESOURCES_TEMPLATES_LIST, cursor)
    }

    /// Reads a resource.
    pub fn read_resource(&self, uri: impl Into<String>) -> Call<ReadResourceResult> {
        let params = ReadResourceParams::new(uri);
        Call::new(self, async move |client: Client, options: Options| {
            client.ask_for_resource(params, &options).await
        })
    }

    /// Asks a server with a handshake to tell when a resource changes; [`listen`](Self::listen) does so for both eras.
    pub fn subscribe(&self, uri: impl Into<String>) -> Call<()> {
        self.acknowledged(&method::RESOURCES_SUBSCRIBE, SubscribeParams::new(uri))
    }

    /// Ends what [`subscribe`](Self::subscribe) began.
    pub fn unsubscribe(&self, uri: impl Into<String>) -> Call<()> {
        self.acknowledged(&method::RESOURCES_UNSUBSCRIBE, SubscribeParams::new(uri))
    }

    /// Lists the prompts, page by page.
    pub fn prompts(&self) -> Pages<Prompt> {
        self.pages(&method::PROMPTS_LIST, |client, cursor| {
            let page = client.list_prompts(cursor);
            async move { page.await.map(|page| (page.prompts, page.next_cursor)) }
        })
    }

    /// Lists one page of prompts.
    pub fn list_prompts(&self, cursor: Option<String>) -> Call<ListPromptsResult> {
        self.page(&method::PROMPTS_LIST, cursor)
    }

    /// Asks for a prompt, filled in with arguments.
    pub fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Call<GetPromptResult> {
        let mut params = GetPromptParams::new(name);
        let arguments = arguments.into_iter();
        let arguments = arguments.map(|(name, value)| (name.into(), value.into()));
        let arguments: BTreeMap<_, _> = arguments.collect();
        params.arguments = (!arguments.is_empty()).then_some(arguments);
        Call::new(self, async move |client: Client, options: Options| {
            let name = params.name.clone();
            let beside = Beside::named(&name);
            client
                .ask_until_complete(&method::PROMPTS_GET, params, beside, &options)
                .await
        })
    }

    /// Asks how an argument could go on.
    pub fn complete(&self, mut params: CompleteParams) -> Call<Completion> {
        let meta = std::mem::take(&mut params.meta);
        let call = Call::new(self, async move |client: Client, options: Options| {
            let method = &method::COMPLETION_COMPLETE;
            let result: CompleteResult = client
                .ask(method, params, Beside::default(), &options)
                .await?;
            Ok(result.completion)
        });
        call.meta(meta)
    }

    /// Asks whether the server is there.
    ///
    /// Since 2026-07-28 there is no such question; the server is asked about itself instead.
    pub fn ping(&self) -> Call<()> {
        match self.inner.rules().pings {
            true => self.acknowledged(&method::PING, EmptyParams::default()),
            false => self.acknowledged(&method::SERVER_DISCOVER, EmptyParams::default()),
        }
    }

    /// Says from which level on log messages are wanted.
    ///
    /// A server with a handshake is told, and remembers it; since 2026-07-28 it goes along with every later request.
    pub fn set_log_level(&self, level: LogLevel) -> Call<()> {
        Call::new(self, async move |client: Client, options: Options| {
            if !client.inner.rules().log_level_per_request {
                let call =
                    client.acknowledged(&method::LOGGING_SET_LEVEL, SetLevelParams::new(level));
                call.with(options).await?;
            }
            client.inner.keep_log_level(level);
            Ok(())
        })
    }

    /// A request that is only acknowledged.
    fn acknowledged<P>(&self, method: &'static Method, params: P) -> Call<()>
    where
        P: Lowered + Send + Sync + 'static,
    {
        Call::new(self, async move |client: Client, options: Options| {
            let result = client.ask(method, params, Beside::default(), &options);
            result.await.map(|EmptyResult { .. }| ())
        })
    }

    fn page<R>(&self, method: &'static Method, cursor: Option<String>) -> Call<R>
    where
        R: Hints + Send + 'static,
    {
        Call::new(self, async move |client: Client, options: Options| {
            let page = client.ask_for_page(method, cursor, &options).await;
            page.map(|(page, _)| page)
        })
    }

    pub(crate) fn pages<T, F>(
        &self,
        method: &'static Method,
        fetch: impl Fn(&Client, Option<String>) -> F + Send + Sync + 'static,
    ) -> Pages<T>
    where
        F: Future<Output = Result<crate::pages::Page<T>, CallError>> + Send + 'static,
    {
        let limits = &self.inner.settings.limits;
        let bounds = (limits.entries, limits.pages);
        let client = self.clone();
        Pages::new(method.name, bounds, move |cursor| {
            Box::pin(fetch(&client, cursor))
        })
    }
}

impl<'a> Beside<'a> {
    /// Names what is asked for.
    pub(crate) fn named(name: &'a str) -> Self {
        Self {
            name: Some(name),
            ..Self::default()
        }
    }
}
