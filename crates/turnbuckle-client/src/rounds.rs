//! Results that ask before they answer: the questions are answered, and the call is made again.

use serde::Serialize;
use serde::de::DeserializeOwned;
use turnbuckle_protocol::Versioned;
use turnbuckle_protocol::method::Method;
use turnbuckle_protocol::types::{
    CallToolParams, GetPromptParams, InputRequiredResult, InputResponses, ReadResourceParams,
    ResultType,
};

use crate::call::Options;
use crate::client::{Beside, Client, Reply, complete};
use crate::error::CallError;

/// Parameters that can carry answers.
pub(crate) trait Answerable: Serialize + Versioned + Clone {
    /// Puts the answers in, and the state that goes back unchanged.
    fn answer(&mut self, responses: InputResponses, state: Option<String>);
}

macro_rules! answerable {
    ($($params:ty),*) => {$(
        impl Answerable for $params {
            fn answer(&mut self, responses: InputResponses, state: Option<String>) {
                self.input_responses = Some(responses);
                self.request_state = state;
            }
        }
    )*};
}

answerable!(CallToolParams, GetPromptParams, ReadResourceParams);

impl Client {
    /// Asks as often as the server has questions, within the bounds of the call.
    pub(crate) async fn ask_in_rounds<P: Answerable>(
        &self,
        method: &'static Method,
        params: P,
        beside: Beside<'_>,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let reply = self.ask_once(method, &params, &beside, options).await?;
        if reply.kind == ResultType::InputRequired {
            let questions: InputRequiredResult = reply.read(method.name)?;
            return Err(CallError::InputRequired {
                method: method.name,
                questions: Box::new(questions),
            });
        }
        Ok(reply)
    }

    /// The same, for a result that must be complete in the end.
    pub(crate) async fn ask_until_complete<P: Answerable, R: DeserializeOwned + Versioned>(
        &self,
        method: &'static Method,
        params: P,
        beside: Beside<'_>,
        options: &Options,
    ) -> Result<R, CallError> {
        let reply = self.ask_in_rounds(method, params, beside, options).await?;
        complete(method.name, &reply)?;
        reply.read(method.name)
    }
}
