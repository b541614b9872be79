//! Plays a server of HTTP+SSE: one stream for all that is said, and a place of its own to post to.

use std::sync::Arc;

use http::Response;
use serde_json::Value;

use super::Stage;
use super::http::{Asked, Body, begin, respond};
use super::voice::{Pieces, Voice};
use crate::client::cue::{Cue, Reply};
use crate::client::part::ENDPOINT;
use crate::tape::{Entry, EventHead};

/// Where messages are posted to.
pub(crate) const MESSAGES: &str = "/messages?session=turnbuckle-1";

/// The stream on which everything is said.
#[derive(Clone)]
pub(super) struct Events {
    channel: usize,
    pieces: Pieces,
}

pub(super) async fn answer(stage: &Arc<Stage>, asked: &Asked) -> Response<Body> {
    let at_endpoint = asked.path == ENDPOINT;
    match asked.method.as_str() {
        "GET" if at_endpoint => open(stage, asked).await,
        "POST" if asked.path.starts_with("/messages") => {
            take(stage, asked);
            respond(stage, asked, Reply::status(202)).await
        }
        "POST" if at_endpoint => respond(stage, asked, Reply::status(405)).await,
        _ => respond(stage, asked, Reply::status(404)).await,
    }
}

async fn open(stage: &Arc<Stage>, asked: &Asked) -> Response<Body> {
    let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
    let (pieces, response) = begin(stage, asked, 200, headers, "");
    stage.tape.push(Entry {
        event: Some(EventHead {
            id: String::new(),
            name: "endpoint".to_owned(),
        }),
        answers: Some(asked.number),
        ..Entry::sent(asked.channel, MESSAGES)
    });
    let endpoint = format!("event: endpoint\ndata: {MESSAGES}\n\n");
    let _ = pieces.send(Ok(endpoint.into())).await;
    stage.state().events = Some(Events {
        channel: asked.channel,
        pieces,
    });
    response
}

fn take(stage: &Arc<Stage>, asked: &Asked) {
    let Ok(message) = serde_json::from_str::<Value>(&asked.body) else {
        return;
    };
    let Some(reply) = stage.hear(&message, Some(&asked.head)) else {
        return;
    };
    let Some(events) = stage.state().events.clone() else {
        return;
    };
    let voice = Voice::events(&stage.tape, events.channel, asked.number, events.pieces);
    let cues = reply
        .cues
        .into_iter()
        .filter(|cue| !matches!(cue, Cue::Cut | Cue::Stay | Cue::Mark(_)))
        .collect();
    let performing = stage.clone();
    stage.spawn(async move { performing.perform(cues, voice).await });
}
