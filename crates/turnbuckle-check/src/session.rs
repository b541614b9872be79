//! A conversation with a server: requests out, answers in, and what is heard on the way.

mod answer;
mod pending;
mod posting;
mod unasked;

#[cfg(test)]
mod tests;

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::outcome::Unmet;
use crate::speech::Speech;
use crate::tape::Tape;
use crate::target::{Reach, Target};
use crate::wire::{
    Said,
    http::{Caller, Draft},
    http_sse::Stream,
    line::Line,
};

pub(crate) use self::answer::Answer;
pub(crate) use self::pending::Pending;
use self::posting::Posting;
use self::unasked::Unasked;

/// A conversation, in one revision, on one transport.
pub(crate) struct Session {
    /// How requests look.
    pub(crate) speech: Speech,
    /// The answer that began it: of `initialize`, or of `server/discover` where there is no handshake.
    pub(crate) opening: Option<Answer>,
    /// The id of the session on HTTP, if the server gave one.
    pub(crate) id: Option<String>,
    /// How long an answer may take.
    pub(crate) patience: Duration,
    tape: Tape,
    channel: Channel,
    next_id: AtomicI64,
    /// What nobody has asked for: notifications, and requests of the server's.
    heard: Mutex<Vec<usize>>,
    /// Where such things come from on HTTP.
    unasked: Unasked,
    /// Answers that came while another one was waited for.
    aside: Mutex<Vec<usize>>,
    /// Whether an answer did not come, so that it is not known if any will.
    doubted: AtomicBool,
}

/// What carries a conversation.
pub(crate) enum Channel {
    /// A line for each message.
    Lines(Line),
    /// Streamable HTTP.
    Http(Caller),
    /// HTTP+SSE of 2024-11-05.
    HttpSse(Stream),
}

impl Session {
    /// Opens a line on which nothing is said yet.
    pub(crate) async fn open(
        target: &Target,
        tape: &Tape,
        speech: Speech,
        patience: Duration,
    ) -> Result<Self, Unmet> {
        let channel = match &target.way {
            Reach::Http(web) if web.http_sse => {
                let caller = Caller::new(web, tape, patience);
                Channel::HttpSse(Stream::open(caller, tape, patience).await?)
            }
            Reach::Http(web) => Channel::Http(Caller::new(web, tape, patience)),
            Reach::Child(_) | Reach::Streams(_) => match Line::open(target, tape).await {
                Ok(line) => Channel::Lines(line),
                Err(why) => return Err(Unmet::not_tested(format!("not reached: {why}"))),
            },
        };
        Ok(Self {
            speech,
            opening: None,
            id: None,
            patience,
            tape: tape.clone(),
            channel,
            next_id: AtomicI64::new(1),
            heard: Mutex::default(),
            unasked: Unasked::default(),
            aside: Mutex::default(),
            doubted: AtomicBool::new(false),
        })
    }

    /// Begins in the way of the revision: with the handshake, or by asking who is there.
    pub(crate) async fn begin_properly(&mut self) -> Result<(), Unmet> {
        if !self.speech.has_handshake() {
            // One that knows only the handshake may never answer: not too long then.
            let opening = self.begin("server/discover", json!({})).await?;
            let answer = self.answer_within(opening, 2 * self.patience).await?;
            let_in(&answer)?;
            self.opening = Some(answer);
            return Ok(());
        }
        // A process may have to start first, and some take their time.
        let opening = self.begin("initialize", self.speech.initialize()).await?;
        let answer = self.answer_within(opening, 6 * self.patience).await?;
        let_in(&answer)?;
        self.id = answer.header("mcp-session-id").map(str::to_owned);
        answer.result()?;
        self.opening = Some(answer);
        self.notify("notifications/initialized", Value::Null)
            .await?;
        Ok(())
    }

    /// Asks, and waits for the answer. That none comes counts as broken.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Result<Answer, Unmet> {
        let pending = self.begin(method, params).await?;
        self.answer(pending).await
    }

    /// Asks, and leaves the answer for later.
    pub(crate) async fn begin(&self, method: &str, params: Value) -> Result<Pending, Unmet> {
        self.begin_with(method, params, Vec::new()).await
    }

    /// Asks with headers of one's own, where the transport has some, and leaves the answer for later.
    pub(crate) async fn begin_with(
        &self,
        method: &str,
        params: Value,
        own: Vec<(String, String)>,
    ) -> Result<Pending, Unmet> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = self.speech.request(id, method, params);
        let mut headers = self.speech.headers(&message, self.id.as_deref());
        if !self.speech.has_handshake() {
            headers.extend(own);
        }
        self.send_text(Some(id.into()), &message.to_string(), headers, false)
            .await
    }

    /// Sends a message as it is, with an id of its own or without; `deliberate` if it is wrong on purpose.
    pub(crate) async fn send(&self, message: Value, deliberate: bool) -> Result<Pending, Unmet> {
        let id = message.get("id").cloned();
        let headers = self.speech.headers(&message, self.id.as_deref());
        self.send_text(id, &message.to_string(), headers, deliberate)
            .await
    }

    /// Sends a text as it is, with the headers given where the transport has some.
    pub(crate) async fn send_text(
        &self,
        id: Option<Value>,
        text: &str,
        headers: Vec<(String, String)>,
        deliberate: bool,
    ) -> Result<Pending, Unmet> {
        match &self.channel {
            Channel::Lines(line) => match line.write(text, deliberate).await {
                Ok(sent) => Ok(Pending::on_line(id, sent)),
                Err(error) => Err(Unmet::not_tested(format!(
                    "the server reads no more: {error}"
                ))),
            },
            Channel::Http(caller) => {
                Ok(self.post(id, caller.request("POST"), text, headers, deliberate))
            }
            Channel::HttpSse(stream) => Ok(self.post(id, stream.post(), text, headers, deliberate)),
        }
    }

    /// Makes up a POST with a request in it, to be changed before it is [sent](Self::exchange).
    pub(crate) fn draft(&self, method: &str, params: Value) -> Result<Draft, Unmet> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = self.speech.request(id, method, params);
        let headers = self.speech.headers(&message, self.id.as_deref());
        let draft = self.http()?.request("POST").headers(headers);
        Ok(draft.body(message.to_string()))
    }

    /// Makes up a POST with a request that does nothing.
    pub(crate) fn harmless(&self) -> Result<Draft, Unmet> {
        match self.speech.has_handshake() {
            true => self.draft("ping", json!({})),
            false => self.draft("server/discover", json!({})),
        }
    }

    /// Sends what was made up, and waits for the answer.
    pub(crate) async fn exchange(&self, draft: Draft) -> Result<Answer, Unmet> {
        let pending = self.under_way(draft.id(), draft);
        self.answer(pending).await
    }

    fn post(
        &self,
        id: Option<Value>,
        draft: Draft,
        text: &str,
        headers: Vec<(String, String)>,
        deliberate: bool,
    ) -> Pending {
        let draft = draft.headers(headers).body(text);
        let draft = match deliberate {
            true => draft.deliberate(),
            false => draft,
        };
        self.under_way(id, draft)
    }

    fn under_way(&self, id: Option<Value>, draft: Draft) -> Pending {
        let posting = match self.speech.has_handshake() {
            true => Posting::resumable(draft, self.tape.clone()),
            false => Posting::start(draft, self.tape.clone()),
        };
        Pending::posted(id, posting)
    }

    /// Waits for the answer to what was begun; answers what the server asks meanwhile.
    ///
    /// On HTTP a response without a message is an answer too: one with a status and nothing else.
    pub(crate) async fn answer(&self, pending: Pending) -> Result<Answer, Unmet> {
        let warming = self.line().map_or(Duration::ZERO, Line::warming);
        self.answer_within(pending, self.patience + warming).await
    }

    /// Waits for the answer for so long.
    pub(crate) async fn answer_within(
        &self,
        mut pending: Pending,
        patience: Duration,
    ) -> Result<Answer, Unmet> {
        let until = tokio::time::Instant::now() + patience;
        let mut before = Vec::new();
        if let Some(number) = self.take_aside(&pending) {
            return Ok(Answer::new(&self.tape, &pending, Some(number), before));
        }
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let (own, said) = match &mut pending.posting {
                // Whoever talks without end does not answer either.
                _ if left.is_zero() => (false, None),
                Some(posting) => tokio::select! {
                    biased;
                    said = posting.next(left) => (true, said),
                    said = self.elsewhere(left) => (false, said),
                },
                None => (false, self.elsewhere(left).await),
            };
            if self.tape.is_full() {
                return Err(Unmet::not_tested(Tape::too_much()));
            }
            match said {
                None => {
                    self.doubted
                        .fetch_or(patience >= self.patience, Ordering::Relaxed);
                    let what = format!("no answer within {patience:?}");
                    return Err(Unmet::broken(what, pending.sent.into_iter().chain(before)));
                }
                Some(Said::Head(status, number)) => pending.head(status, number),
                Some(Said::Message(number)) if self.is_beside(own, &pending) => {
                    if !own {
                        self.hear_entry(number).await;
                    }
                }
                Some(Said::Message(number)) => {
                    let message = self.tape.entry(number).json().unwrap_or_default();
                    let answers = message.get("method").is_none() && !message.is_array();
                    if pending.is_answered_by(&message, own) {
                        let answer = Answer::new(&self.tape, &pending, Some(number), before);
                        pending.finish();
                        return Ok(answer);
                    }
                    match answers && !own && message.get("id").is_some() {
                        true => self.put_aside(number),
                        false => self.hear(number, &message).await,
                    }
                    before.push(number);
                }
                // On HTTP+SSE the answer comes on the stream.
                Some(Said::End(None)) if own && self.waits_for_stream(&pending) => {
                    pending.posting = None;
                }
                Some(Said::End(None)) if own && pending.status.is_some() => {
                    return Ok(Answer::new(&self.tape, &pending, None, before));
                }
                Some(Said::End(why)) => {
                    let why = why.map_or_else(String::new, |why| format!(": {why}"));
                    let what = format!("the connection ended instead of an answer{why}");
                    return Err(Unmet::broken(what, pending.sent.into_iter().chain(before)));
                }
            }
        }
    }

    /// Waits until what was posted has been taken or refused; returns the status, and the body if there is one.
    ///
    /// On HTTP+SSE that is no answer yet. Where nothing is posted, there is nothing to wait for.
    pub(crate) async fn taken(&self, pending: &mut Pending) -> (Option<u16>, Option<usize>) {
        let mut body = None;
        let until = tokio::time::Instant::now() + self.patience;
        while let Some(posting) = &mut pending.posting {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            let said = match left.is_zero() {
                true => None,
                false => posting.next(left).await,
            };
            match said {
                Some(Said::Head(status, number)) => pending.head(status, number),
                Some(Said::Message(number)) => body = Some(number),
                Some(Said::End(_)) | None => pending.posting = None,
            }
        }
        (pending.status, body)
    }

    /// Returns what is said outside of the responses to our requests; `None` if nothing is for so long.
    async fn elsewhere(&self, patience: Duration) -> Option<Said> {
        match &self.channel {
            Channel::Lines(line) => line.next(patience).await,
            Channel::Http(_) => self.unasked.next(patience).await.map(Said::Message),
            Channel::HttpSse(stream) => stream.next(patience).await,
        }
    }

    /// Says whether nothing that comes from here can be an answer: a stream of its own beside the responses of HTTP, or the
    /// bodies of the responses where the answers come on the stream.
    fn is_beside(&self, own: bool, pending: &Pending) -> bool {
        match self.channel {
            Channel::Lines(_) => false,
            Channel::Http(_) => !own,
            Channel::HttpSse(_) => own && pending.is_accepted(),
        }
    }

    fn waits_for_stream(&self, pending: &Pending) -> bool {
        let streams = matches!(self.channel, Channel::HttpSse(_));
        streams && pending.is_accepted() && pending.id.is_some()
    }

    /// Tells the server something that nobody answers. On HTTP returns the response.
    pub(crate) async fn notify(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Option<Answer>, Unmet> {
        let message = self.speech.notification(method, params);
        let pending = self.send(message, false).await?;
        match self.channel {
            Channel::Lines(_) => Ok(None),
            Channel::Http(_) | Channel::HttpSse(_) => self.answer(pending).await.map(Some),
        }
    }

    /// Makes sure that nothing is missed from now on of what nobody asks for.
    ///
    /// On HTTP that comes on a stream of its own, if the server offers one: open it before doing what the server will speak of.
    /// Where a message of the server's needs no stream, and where there is none, this does nothing.
    pub(crate) async fn attend(&self) {
        if let (Channel::Http(caller), true) = (&self.channel, self.speech.has_handshake()) {
            let headers = self.speech.headers(&Value::Null, self.id.as_deref());
            let draft = || {
                let draft = caller.request("GET").headers(headers);
                draft
                    .without("content-type")
                    .header("accept", "text/event-stream")
            };
            self.unasked.open(draft, &self.tape).await;
        }
    }

    /// Listens for so long to what nobody has asked for; returns what is new.
    ///
    /// See [`attend`](Self::attend) for what was said before on HTTP.
    pub(crate) async fn listen(&self, patience: Duration) -> Vec<usize> {
        self.attend().await;
        let until = tokio::time::Instant::now() + patience;
        let before = self.heard().len();
        loop {
            let left = until.saturating_duration_since(tokio::time::Instant::now());
            if left.is_zero() {
                break;
            }
            match self.elsewhere(left).await {
                Some(Said::Message(number)) => self.hear_entry(number).await,
                Some(Said::Head(..)) => {}
                Some(Said::End(_)) | None => break,
            }
        }
        self.heard().split_off(before)
    }

    /// Returns what was heard so far that nobody has asked for: numbers of the tape.
    pub(crate) fn heard(&self) -> Vec<usize> {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns what the server says that it can do.
    pub(crate) fn capabilities(&self) -> Value {
        let opening = self.opening.as_ref();
        opening
            .and_then(|answer| answer.value["result"].get("capabilities"))
            .cloned()
            .unwrap_or_default()
    }

    /// Says whether the server has ended it. What HTTP carries has no end.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(&self.channel, Channel::Lines(line) if line.has_ended())
    }

    /// Says whether nothing can be found out in it any more: the server has ended it, or answers nothing at all.
    pub(crate) async fn is_lost(&self) -> bool {
        if self.has_ended() {
            return true;
        }
        let doubted = self.doubted.swap(false, Ordering::Relaxed);
        doubted && self.ask(self.speech.harmless(), Value::Null).await.is_err()
    }

    /// Returns the line, where each message is one.
    pub(crate) fn line(&self) -> Result<&Line, Unmet> {
        match &self.channel {
            Channel::Lines(line) => Ok(line),
            Channel::Http(_) | Channel::HttpSse(_) => {
                Err(Unmet::not_applicable("there are no lines on HTTP"))
            }
        }
    }

    /// Returns what sends requests of Streamable HTTP.
    pub(crate) fn http(&self) -> Result<&Caller, Unmet> {
        match &self.channel {
            Channel::Http(caller) => Ok(caller),
            Channel::Lines(_) | Channel::HttpSse(_) => Err(Unmet::not_applicable(
                "there is no Streamable HTTP on this transport",
            )),
        }
    }

    /// Returns the stream of HTTP+SSE.
    pub(crate) fn http_sse(&self) -> Result<&Stream, Unmet> {
        match &self.channel {
            Channel::HttpSse(stream) => Ok(stream),
            Channel::Lines(_) | Channel::Http(_) => Err(Unmet::not_applicable(
                "there is no HTTP+SSE on this transport",
            )),
        }
    }

    async fn hear_entry(&self, number: usize) {
        let message = self.tape.entry(number).json().unwrap_or_default();
        self.hear(number, &message).await;
    }

    /// Takes down what nobody asked for, and answers what is a request: itself, or those in a batch.
    async fn hear(&self, number: usize, message: &Value) {
        self.heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(number);
        match message {
            Value::Array(all) => {
                for message in all {
                    self.reply(message).await;
                }
            }
            message => self.reply(message).await,
        }
    }

    async fn reply(&self, message: &Value) {
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            return;
        };
        let mut reply = match method {
            "ping" => json!({ "result": {} }),
            "roots/list" => json!({ "result": { "roots": [] } }),
            "sampling/createMessage" => json!({ "result": {
                "role": "assistant", "model": "none", "stopReason": "endTurn",
                "content": { "type": "text", "text": "This is a check: no model was asked." },
            } }),
            "elicitation/create" => json!({ "result": { "action": "decline" } }),
            _ => json!({ "error": { "code": -32601, "message": "Method not found" } }),
        };
        reply["jsonrpc"] = "2.0".into();
        reply["id"] = id.clone();
        // Whether it arrives is no business of the rule that happens to wait.
        if let Ok(Pending {
            posting: Some(mut posting),
            ..
        }) = self.send(reply, false).await
        {
            posting.next(self.patience).await;
        }
    }

    fn put_aside(&self, number: usize) {
        self.aside
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(number);
    }

    fn take_aside(&self, pending: &Pending) -> Option<usize> {
        let mut aside = self.aside.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = |&number: &usize| {
            let message = self.tape.entry(number).json();
            message.is_some_and(|message| pending.is_answered_by(&message, false))
        };
        let at = aside.iter().position(answers)?;
        Some(aside.remove(at))
    }
}

/// Makes sure that the server has not sent us away.
fn let_in(answer: &Answer) -> Result<(), Unmet> {
    match answer.status {
        Some(status @ (401 | 403)) => Err(Unmet::not_tested(format!(
            "the server wants to know who asks: HTTP status {status}"
        ))),
        _ => Ok(()),
    }
}
