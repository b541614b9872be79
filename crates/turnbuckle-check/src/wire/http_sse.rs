//! HTTP+SSE of 2024-11-05: a stream for all that the server says, and a place to post messages to.

use std::time::Duration;

use tokio::{
    sync::{Mutex, mpsc},
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{
    Said,
    http::{Caller, Draft, Event, Reply},
};
use crate::outcome::Unmet;
use crate::tape::Tape;

/// How long a stream may be silent before nobody reads it any more.
const LISTENING: Duration = Duration::from_secs(24 * 60 * 60);

/// A stream that is open, and where messages go.
pub(crate) struct Stream {
    /// Sends requests.
    pub(crate) caller: Caller,
    /// Where messages are posted to: path and query.
    pub(crate) place: String,
    /// The entries of the request for the stream, and of the response.
    pub(crate) opened: [usize; 2],
    /// The events until the one that said so.
    pub(crate) told: Vec<usize>,
    inbox: Mutex<mpsc::UnboundedReceiver<Said>>,
    reading: JoinHandle<()>,
}

impl Stream {
    /// Opens the stream, and waits until it has said where messages go.
    pub(crate) async fn open(
        caller: Caller,
        tape: &Tape,
        patience: Duration,
    ) -> Result<Self, Unmet> {
        let mut reply = ask(&caller).send().await?;
        if reply.status != 200 || !reply.is_stream() {
            let what = format!("the status {} instead of a stream", reply.status);
            return Err(Unmet::broken(what, reply.entries()));
        }
        let (told, place) = place(&mut reply, &caller, tape, patience).await?;
        let opened = reply.entries();
        let (sender, inbox) = mpsc::unbounded_channel();
        let reading = tokio::spawn(async move {
            let end = read(reply, &sender).await;
            let _ = sender.send(Said::End(end));
        });
        Ok(Self {
            caller,
            place,
            opened,
            told,
            inbox: Mutex::new(inbox),
            reading,
        })
    }

    /// Begins to post a message.
    pub(crate) fn post(&self) -> Draft {
        let draft = self.caller.request_to("POST", &self.place);
        draft.header("content-type", "application/json")
    }

    /// Returns what is said next; `None` if nothing is for so long.
    pub(crate) async fn next(&self, patience: Duration) -> Option<Said> {
        timeout(patience, async {
            let mut inbox = self.inbox.lock().await;
            inbox.recv().await.unwrap_or(Said::End(None))
        })
        .await
        .ok()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Asks for a stream.
pub(crate) fn ask(caller: &Caller) -> Draft {
    caller.request("GET").header("accept", "text/event-stream")
}

/// Waits for the event that says where messages go; others before it are forgiven.
async fn place(
    reply: &mut Reply,
    caller: &Caller,
    tape: &Tape,
    patience: Duration,
) -> Result<(Vec<usize>, String), Unmet> {
    let mut events = Vec::new();
    let until = Instant::now() + patience;
    loop {
        let number = match reply.event_until(until).await {
            Event::Message(number) => number,
            Event::Silence => {
                let what = "no event says where messages go";
                return Err(Unmet::broken(
                    what,
                    reply.entries().into_iter().chain(events),
                ));
            }
            Event::End | Event::Cut(_) => {
                let what = "the stream ends before it says where messages go";
                return Err(Unmet::broken(
                    what,
                    reply.entries().into_iter().chain(events),
                ));
            }
        };
        events.push(number);
        let entry = tape.entry(number);
        if entry.event.is_some_and(|event| event.name == "endpoint") {
            let place = entry.text.trim();
            let found = resolve(place, caller.path(), caller.host());
            let other = || format!("messages shall go to `{place}`, on another server");
            let found = found.ok_or_else(|| Unmet::broken(other(), [number]))?;
            return Ok((events, found));
        }
    }
}

/// Finds a place of the same server: path and query.
fn resolve(place: &str, base: &str, host: &str) -> Option<String> {
    if let Some((_, rest)) = place.split_once("://") {
        let at = rest.find(['/', '?']).unwrap_or(rest.len());
        let (theirs, path) = rest.split_at(at);
        return match theirs.eq_ignore_ascii_case(host) {
            true => resolve(path, "/", host),
            false => None,
        };
    }
    let base = base.split('?').next().unwrap_or_default();
    if place.starts_with('/') {
        return Some(place.to_owned());
    }
    if place.starts_with('?') {
        return Some(format!("{base}{place}"));
    }
    let folder = base.rsplit_once('/').map_or("", |(folder, _)| folder);
    Some(format!("{folder}/{place}"))
}

async fn read(mut reply: Reply, said: &mpsc::UnboundedSender<Said>) -> Option<String> {
    loop {
        match reply.event(LISTENING).await {
            Event::Message(number) => said.send(Said::Message(number)).ok()?,
            Event::Silence | Event::End => return None,
            Event::Cut(why) => return Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::resolve;

    #[test]
    fn places_are_found_from_where_the_stream_is() {
        let found = |place| resolve(place, "/api/sse?key=1", "example.com:8080");

        assert_eq!(found("/messages?id=1").as_deref(), Some("/messages?id=1"));
        assert_eq!(found("?id=1").as_deref(), Some("/api/sse?id=1"));
        assert_eq!(found("messages").as_deref(), Some("/api/messages"));
        assert_eq!(found("http://EXAMPLE.com:8080/m").as_deref(), Some("/m"));
        assert_eq!(found("http://elsewhere.example/m"), None);
    }
}
