//! Plays a server on HTTP.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Limited};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
};

use super::voice::{Pieces, Voice};
use super::{Stage, http_sse};
use crate::client::cue::{Cue, Form, Reply};
use crate::client::part::{ENDPOINT, Page};
use crate::secret;
use crate::tape::{Entry, Head};
use crate::wire;

/// The longest body that is read.
const LONGEST: usize = 16 * 1024 * 1024;

pub(super) async fn serve(
    stage: Arc<Stage>,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) {
    let answering = service_fn(move |request| {
        let stage = stage.clone();
        async move { Ok::<_, Infallible>(answer(stage, request).await) }
    });
    // A client that goes away in the middle is no business of ours.
    let _ = http1::Builder::new()
        .serve_connection(TokioIo::new(stream), answering)
        .await;
}

/// A request as it came.
pub(super) struct Asked {
    pub(super) channel: usize,
    /// Its entry on the tape.
    pub(super) number: usize,
    pub(super) method: String,
    /// Path and query.
    pub(super) path: String,
    pub(super) head: Head,
    pub(super) body: String,
}

async fn answer(stage: Arc<Stage>, request: Request<Incoming>) -> Response<Body> {
    let Some(asked) = Asked::of(&stage, request).await else {
        let (_, nothing) = mpsc::channel(1);
        let mut response = Response::new(Body(nothing));
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
        return response;
    };
    if stage.part.is_http_sse() {
        return http_sse::answer(&stage, &asked).await;
    }
    let at_endpoint = asked.path.split('?').next() == Some(ENDPOINT);
    match asked.method.as_str() {
        "POST" if at_endpoint => post(&stage, &asked).await,
        method => {
            let reply = stage.part.page(&Page {
                method,
                path: &asked.path,
                head: &asked.head,
                body: &asked.body,
            });
            respond(&stage, &asked, reply).await
        }
    }
}

async fn post(stage: &Arc<Stage>, asked: &Asked) -> Response<Body> {
    let messages = match serde_json::from_str(&asked.body) {
        Ok(Value::Array(messages)) => messages,
        Ok(message) => vec![message],
        Err(_) => return respond(stage, asked, Reply::status(400)).await,
    };
    let replies = messages
        .iter()
        .filter_map(|message| stage.hear(message, Some(&asked.head)));
    let mut replies: Vec<_> = replies.collect();
    let reply = match replies.len() {
        0 => stage.part.accepted(&asked.head),
        1 => replies.remove(0),
        _ => Reply::cues(replies.into_iter().flat_map(|reply| reply.cues)).streamed(),
    };
    respond(stage, asked, reply).await
}

/// Sends a response, and does what belongs to it.
pub(super) async fn respond(stage: &Arc<Stage>, asked: &Asked, reply: Reply) -> Response<Body> {
    let (kind, text) = match reply.form {
        Form::Empty => (None, String::new()),
        Form::Json => (
            Some("application/json"),
            last_message(stage, &reply.cues).await,
        ),
        Form::Stream => (Some("text/event-stream"), String::new()),
    };
    let mut headers = reply.headers;
    headers.extend(kind.map(|kind| ("content-type".to_owned(), kind.to_owned())));
    let (pieces, response) = begin(stage, asked, reply.status, headers, &text);
    match reply.form {
        Form::Empty | Form::Json => {
            let _ = pieces.try_send(Ok(text.into()));
        }
        Form::Stream => {
            let mut voice = Voice::events(&stage.tape, asked.channel, asked.number, pieces);
            let performing = stage.clone();
            stage.spawn(async move {
                voice.comment().await;
                performing.perform(reply.cues, voice).await;
            });
        }
    }
    response
}

/// Begins a response; its body is what is sent on.
pub(super) fn begin(
    stage: &Stage,
    asked: &Asked,
    status: u16,
    headers: Vec<(String, String)>,
    text: &str,
) -> (Pieces, Response<Body>) {
    stage.tape.push(Entry {
        head: Some(Head {
            line: status.to_string(),
            headers: headers.clone(),
        }),
        answers: Some(asked.number),
        ..Entry::sent(asked.channel, text)
    });
    let (pieces, receiver) = mpsc::channel(16);
    let mut response = Response::new(Body(receiver));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().append(name, value);
        }
    }
    (pieces, response)
}

/// Does what is to be done before an answer that is one message, and returns the message.
async fn last_message(stage: &Stage, cues: &[Cue]) -> String {
    let mut last = String::new();
    for cue in cues {
        match cue {
            Cue::Say(message) => last = message.to_string(),
            Cue::Wait(time) => tokio::time::sleep(*time).await,
            Cue::Ask(_) | Cue::Mark(_) | Cue::Retry(_) | Cue::Cut | Cue::Stay => {}
        }
    }
    stage.touch();
    last
}

impl Asked {
    /// Reads a request; nothing once the client has said too much.
    async fn of(stage: &Stage, request: Request<Incoming>) -> Option<Self> {
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, LONGEST).collect().await;
        let cut = body.is_err();
        let body = body.map(Collected::to_bytes).unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        let path = parts
            .uri
            .path_and_query()
            .map_or_else(|| "/".to_owned(), ToString::to_string);
        let headers = parts.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.as_str().to_owned(), masked(name.as_str(), &value))
        });
        let head = Head {
            line: format!("{} {path}", parts.method),
            headers: headers.collect(),
        };
        let channel = wire::channel();
        let kept = match parts.uri.path() == ENDPOINT {
            true => body.clone(),
            false => secret::form(&body),
        };
        let number = stage.take_down(Entry {
            head: Some(head.clone()),
            cut,
            ..Entry::received(channel, kept)
        })?;
        Some(Self {
            channel,
            number,
            method: parts.method.to_string(),
            path,
            head,
            body,
        })
    }
}

/// Hides what the client may have been given for somebody else; tokens of ours are no secret.
fn masked(name: &str, value: &str) -> String {
    match name {
        "authorization" if value.contains("turnbuckle-") => value.to_owned(),
        "authorization" => {
            let scheme = value.split(' ').next().unwrap_or_default();
            format!("{scheme} ***")
        }
        name => secret::header(name, value),
    }
}

/// The body of a response: pieces as they come, and an error where it is broken off.
pub(super) struct Body(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let piece = self.0.poll_recv(cx);
        piece.map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
