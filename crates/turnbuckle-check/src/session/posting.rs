//! A response that is read while nobody looks.

use std::time::Duration;

use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use crate::outcome::Unmet;
use crate::tape::Tape;
use crate::wire::{
    Said,
    http::{Draft, Event, Reply},
};

/// How long a stream may be silent before nobody reads it any more.
const READING: Duration = Duration::from_secs(60);

/// How long the rest of a stream may take that has brought its answer.
const FINISHING: Duration = Duration::from_secs(2);

/// How often a stream that ended before its answer is asked for again, and how long that waits at most.
const RESUMPTIONS: usize = 5;
const LONGEST_WAIT: Duration = Duration::from_secs(3);

/// The same for one that is there for what nobody has asked for.
const LISTENING: Duration = Duration::from_secs(24 * 60 * 60);

/// A request of HTTP that is under way. Dropping it closes its connection.
pub(crate) struct Posting {
    /// The entry of the request.
    pub(super) sent: usize,
    said: mpsc::UnboundedReceiver<Said>,
    reading: JoinHandle<()>,
}

impl Posting {
    /// Sends a request, and reads what comes back.
    pub(super) fn start(draft: Draft, tape: Tape) -> Self {
        Self::read(draft, tape, READING, Lost::ForGood)
    }

    /// The same; a stream that ends before the answer is asked for again, if it said how.
    pub(super) fn resumable(draft: Draft, tape: Tape) -> Self {
        Self::read(draft, tape, READING, Lost::Resumed)
    }

    /// Reads for as long as anybody listens.
    pub(super) fn listen(draft: Draft, tape: Tape) -> Self {
        Self::read(draft, tape, LISTENING, Lost::ForGood)
    }

    fn read(mut draft: Draft, tape: Tape, patience: Duration, lost: Lost) -> Self {
        let (_, sent) = draft.note();
        let (sender, said) = mpsc::unbounded_channel();
        let reader = Reader {
            tape,
            said: sender,
            patience,
            lost,
        };
        let reading = tokio::spawn(reader.run(draft));
        Self {
            sent,
            said,
            reading,
        }
    }

    /// Returns what comes next; `None` if nothing does for so long.
    pub(super) async fn next(&mut self, patience: Duration) -> Option<Said> {
        match timeout(patience, self.said.recv()).await {
            Ok(said) => Some(said.unwrap_or(Said::End(None))),
            Err(_) => None,
        }
    }

    /// Reads the rest.
    pub(super) async fn finish(mut self) {
        let _ = timeout(FINISHING, async {
            while self.said.recv().await.is_some() {}
        })
        .await;
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Reads a response, and tells about it.
struct Reader {
    tape: Tape,
    said: mpsc::UnboundedSender<Said>,
    patience: Duration,
    lost: Lost,
}

/// What becomes of a stream that ends before the answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    ForGood,
    Resumed,
}

/// How a stream ended.
enum Ended {
    /// Nothing more is to come.
    Done(Option<String>),
    /// The answer is still to come: ask for what follows this event, so long from now.
    Early(String, Duration),
}

impl Reader {
    async fn run(self, draft: Draft) {
        if let Ok(why) = self.read_all(draft).await {
            let _ = self.tell(Said::End(why));
        }
    }

    /// Reads all that comes, and asks again for what was lost; returns what was not in order.
    async fn read_all(&self, draft: Draft) -> Result<Option<String>, Deaf> {
        let mut ended = self.read(draft.clone(), true).await?;
        for _ in 0..RESUMPTIONS {
            let Ended::Early(last, wait) = ended else {
                break;
            };
            tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
            ended = self.read(draft.clone().resume(&last), false).await?;
        }
        Ok(match ended {
            Ended::Done(why) => why,
            Ended::Early(..) => None,
        })
    }

    /// Reads a whole response; says how it ended.
    async fn read(&self, draft: Draft, first: bool) -> Result<Ended, Deaf> {
        // How long the answer may take is for whoever waits for it to say.
        let mut reply = match draft.send_within(self.patience).await {
            Ok(reply) => reply,
            Err(Unmet::Broken { what, .. }) => return Ok(Ended::Done(Some(what))),
            Err(_) => return Ok(Ended::Done(None)),
        };
        if first {
            self.tell(Said::Head(reply.status, reply.received))?;
        }
        match reply.is_stream() {
            true => self.events(reply).await,
            // A stream that cannot be resumed has ended, whatever is said about it.
            false if !first => Ok(Ended::Done(None)),
            false => {
                let text = reply.text(self.patience).await;
                if !text.is_empty() {
                    self.tell(Said::Message(reply.received))?;
                }
                Ok(Ended::Done(reply.cut().map(str::to_owned)))
            }
        }
    }

    async fn events(&self, mut reply: Reply) -> Result<Ended, Deaf> {
        let mut last = String::new();
        let mut answered = false;
        let why = loop {
            match reply.event(self.patience).await {
                Event::Message(number) => {
                    let entry = self.tape.entry(number);
                    last = entry.event.as_ref().map_or(last, |event| event.id.clone());
                    let message = entry.json().unwrap_or_default();
                    answered |= message.get("method").is_none() && message.get("id").is_some();
                    // An event without data only names an id to resume from.
                    if !entry.text.is_empty() {
                        self.tell(Said::Message(number))?;
                    }
                }
                Event::Silence | Event::End => break None,
                Event::Cut(why) => break Some(why),
            }
        };
        let resumes = self.lost == Lost::Resumed && !answered && !last.is_empty();
        Ok(match resumes {
            true => Ended::Early(last, reply.retry().unwrap_or_default()),
            false => Ended::Done(why),
        })
    }

    fn tell(&self, said: Said) -> Result<(), Deaf> {
        self.said.send(said).map_err(|_| Deaf)
    }
}

/// Nobody listens any more.
struct Deaf;
