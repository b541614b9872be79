//! The client of a connection that belongs to one session: it gets what the server sends outside of calls.

use turnbuckle_protocol::{
    Revision, RpcError,
    types::{ClientCapabilities, JsonObject, TasksCapability},
};
use turnbuckle_server::relay::{GeneralStream, RelayedRequest};

use crate::{
    calls::{
        downstream::level_of,
        running::{ClientRequest, check_declared},
        url_elicitation,
    },
    convert,
    observation::CallRecord,
    tasks::{self, ids::RelatedTask},
};

/// The client of a session with its own connection to a server.
pub(crate) struct SessionClient {
    stream: GeneralStream,
    revision: Revision,
    capabilities: ClientCapabilities,
    /// Whether the client uses a view, and so knows which server it uses.
    is_of_view: bool,
}

impl SessionClient {
    /// Returns the client of a request, if it has a session in which it gets requests.
    pub(super) fn of_request(
        request: &RelayedRequest,
        capabilities: &ClientCapabilities,
    ) -> Option<Self> {
        Some(Self {
            stream: request.general_stream()?,
            revision: request.revision(),
            capabilities: capabilities.clone(),
            is_of_view: request
                .attached::<CallRecord>()
                .is_some_and(|record| record.is_of_view),
        })
    }

    /// Returns whether the client knows which server it uses.
    pub(super) fn is_of_view(&self) -> bool {
        self.is_of_view
    }

    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// Returns whether the client can get requests now.
    pub(super) fn can_receive(&self) -> bool {
        self.stream.is_open()
    }

    /// Sends a client request that is in the revision of the client.
    pub(super) async fn request(
        &self,
        method: &'static str,
        params: &str,
    ) -> Result<String, RpcError> {
        self.stream.request_client(method, params, None).await
    }

    /// The tasks of the client, if the server can request them.
    pub(super) fn tasks(&self) -> Option<&TasksCapability> {
        self.capabilities.tasks.as_ref()
    }

    /// Returns whether a client request with this method can become a task of the client.
    pub(super) fn accepts_task(&self, method: &str) -> bool {
        let requests = self.tasks().and_then(|tasks| tasks.requests.as_ref());
        let has_member = |settings: &Option<JsonObject>, name| {
            settings
                .as_ref()
                .is_some_and(|settings| settings.contains_key(name))
        };
        requests.is_some_and(|requests| match method {
            "sampling/createMessage" => has_member(&requests.sampling, "createMessage"),
            "elicitation/create" => has_member(&requests.elicitation, "create"),
            _ => false,
        })
    }

    /// Starts to pass a request about a task of the client on.
    pub(super) fn start_task_request(&self, method: &'static str, params: &str) -> ClientRequest {
        ClientRequest::OutsideOfCalls {
            stream: self.stream.clone(),
            method,
            params: params.to_owned(),
            // This result is awaited as long as the task runs.
            timeout: (method == "tasks/result").then_some(tasks::MAX_LIFETIME),
        }
    }

    /// Passes a log message on, if the session accepts messages of this level.
    pub(super) fn log(&self, params: &str) {
        let params = RelatedTask::to_client(None, params);
        if let Ok(params) = params
            && let Some(level) = level_of(&params)
        {
            self.stream.log(level, &params);
        }
    }

    /// Passes another notification on.
    pub(super) fn notify(&self, method: &str, params: &str) {
        if let Ok(params) = RelatedTask::to_client(None, params) {
            self.stream.notify(method, &params);
        }
    }

    /// Starts to pass a client request on. `upstream` is the revision of the server, and `task` the task
    /// of the server that it belongs to.
    pub(super) fn start_request(
        &self,
        method: &'static str,
        params: &str,
        upstream: Revision,
        task: Option<&RelatedTask>,
    ) -> Result<ClientRequest, RpcError> {
        check_declared(&self.capabilities, method, params)?;
        let params = convert::client_request_params(method, params, upstream, self.revision)?;
        let params = RelatedTask::to_client(task, &params)?;
        if let Some(id) = url_elicitation::id_of(&params) {
            self.stream.expect_elicitation_complete(&id);
        }
        Ok(ClientRequest::OutsideOfCalls {
            stream: self.stream.clone(),
            method,
            params,
            timeout: None,
        })
    }
}
