//! Results that ask before they answer: the questions are answered, and the call is made again.
//!
//! Each round is a request of its own, with the same parameters, the answers, and the state that the server wants back.
//! Questions of one round are asked at the same time. A server of 2025-11-25 has a narrower way to the same end, see
//! `visits`.

mod questions;
mod visits;

use std::borrow::Cow;
use std::ops::ControlFlow::{Break, Continue};

use serde::de::DeserializeOwned;
use turnbuckle_protocol::Versioned;
use turnbuckle_protocol::method::Method;
use turnbuckle_protocol::types::{
    CallToolParams, GetPromptParams, InputResponses, ReadResourceParams, ResultType,
};

pub(crate) use questions::Question;

use crate::call::Options;
use crate::client::{Begun, Beside, Client, Reply, complete, over_unless};
use crate::error::CallError;
use crate::lowered::Lowered;

/// Parameters that can carry answers.
pub(crate) trait Answerable: Lowered {
    /// Puts the answers in, and the state that goes back unchanged.
    fn answer(&mut self, responses: InputResponses, state: Option<String>);
}

macro_rules! answerable {
    ($($params:ty),*) => {$(
        impl Answerable for $params {
            fn answer(&mut self, responses: InputResponses, state: Option<String>) {
                self.input_responses = (!responses.is_empty()).then_some(responses);
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
        params: &P,
        beside: &Beside<'_>,
        options: &Options,
    ) -> Result<Reply, CallError> {
        let begun = Begun::now(options);
        let first = self.ask_once(method, params, beside, options).await;
        let first = match over_unless(first, asks_or_fails) {
            Break(reply) => return reply,
            Continue(first) => first,
        };
        // Rare, and would make every call as large.
        let left = begun.left(options);
        let further = self.ask_further(method, params, beside, left, first);
        Box::pin(further).await
    }

    /// Goes on after the first round.
    async fn ask_further<P: Answerable>(
        &self,
        method: &'static Method,
        params: &P,
        beside: &Beside<'_>,
        // All rounds together have one total; what answering takes in between is not the server's time.
        mut options: Options,
        mut reply: Result<Reply, CallError>,
    ) -> Result<Reply, CallError> {
        let mut params = Cow::Borrowed(params);
        let mut visited = visits::Visited::default();
        let mut round = 0;
        loop {
            match reply {
                Ok(mut reply) if reply.kind != ResultType::InputRequired => {
                    reply.rounds = round;
                    return Ok(reply);
                }
                Err(error) if round == options.max_rounds => return Err(error),
                Err(error) => self.visit_first(error, &mut visited, &options).await?,
                Ok(reply) if round == options.max_rounds => {
                    return Err(no_more_rounds(method.name, &reply, round));
                }
                Ok(reply) => {
                    let questions = questions::Questions::of(method.name, &reply)?;
                    let (responses, state) = self.answer_all(method.name, questions).await?;
                    params.to_mut().answer(responses, state);
                }
            }
            let begun = Begun::now(&options);
            reply = self.ask_once(method, &*params, beside, &options).await;
            options = begun.left(&options);
            round += 1;
        }
    }

    /// The same, for a result that must be complete in the end.
    pub(crate) async fn ask_until_complete<P: Answerable, R: DeserializeOwned + Versioned>(
        &self,
        method: &'static Method,
        params: P,
        beside: Beside<'_>,
        options: &Options,
    ) -> Result<R, CallError> {
        let reply = self
            .ask_in_rounds(method, &params, &beside, options)
            .await?;
        complete(method.name, &reply)?;
        reply.read(method.name)
    }
}

fn asks_or_fails(reply: &Result<Reply, CallError>) -> bool {
    reply
        .as_ref()
        .map_or(true, |reply| reply.kind == ResultType::InputRequired)
}

/// The error of a call whose server asks once more than it may.
fn no_more_rounds(method: &'static str, reply: &Reply, rounds: usize) -> CallError {
    if rounds > 0 {
        return CallError::TooManyRounds { method, rounds };
    }
    match reply.read(method) {
        Ok(questions) => CallError::InputRequired {
            method,
            questions: Box::new(questions),
        },
        Err(error) => error,
    }
}
