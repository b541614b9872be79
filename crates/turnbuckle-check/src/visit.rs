//! A server, met in one revision on one transport.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::sync::{Mutex, OnceCell};
use turnbuckle_protocol::revision::Revision;

use crate::discovery::{Call, Discovered, List, Read, get_prompts, read_resources};
use crate::lives::Lives;
use crate::options::Options;
use crate::outcome::Unmet;
use crate::server::{Findings, Gathered};
use crate::session::{Answer, Session};
use crate::speech::Speech;
use crate::tape::Tape;
use crate::target::{Reach, Target};
use crate::trials::Trials;
use crate::wire::http::Caller;

/// How many conversations are begun for rules to share: a server that ends them all is not kept alive for ever.
const SESSIONS: usize = 8;

/// How often in a row a conversation of one's own may not begin before nobody tries it any more.
const FAILURES: usize = 3;

/// A server, met in one revision on one transport: what rules look at.
pub(crate) struct Visit {
    /// The revision that is spoken.
    pub(crate) revision: Revision,
    /// Who is visited.
    pub(crate) target: Target,
    /// What the user has chosen.
    pub(crate) options: Options,
    /// All that was said in this revision.
    pub(crate) tape: Tape,
    shared: Shared,
    rough: Shared,
    failures: AtomicUsize,
    /// What the server answered to handshakes, by the version that was asked for.
    pub(crate) offers: Mutex<HashMap<String, Answer>>,
    discovered: OnceCell<Result<Discovered, Unmet>>,
    read: OnceCell<Vec<Read>>,
    prompted: OnceCell<Vec<Read>>,
    trials: OnceCell<Result<Trials, Unmet>>,
    lives: OnceCell<Result<Lives, Unmet>>,
    /// What rules about shapes have asked for.
    pub(crate) gathered: OnceCell<Gathered>,
    /// What they have found.
    pub(crate) findings: OnceLock<Findings>,
}

impl Visit {
    /// Prepares a visit; nobody is spoken to yet.
    pub(crate) fn new(target: &Target, options: &Options, revision: Revision) -> Self {
        Self {
            revision,
            target: target.clone(),
            options: options.clone(),
            tape: Tape::default(),
            shared: Shared::default(),
            rough: Shared::default(),
            failures: AtomicUsize::new(0),
            offers: Mutex::default(),
            discovered: OnceCell::new(),
            read: OnceCell::new(),
            prompted: OnceCell::new(),
            trials: OnceCell::new(),
            lives: OnceCell::new(),
            gathered: OnceCell::new(),
            findings: OnceLock::new(),
        }
    }

    /// Returns the conversation that most rules share, begun properly.
    ///
    /// Whoever may break it uses [`fresh`](Self::fresh) or [`rough`](Self::rough) instead.
    pub(crate) async fn session(&self) -> Result<&Session, Unmet> {
        self.shared.get(self).await
    }

    /// Returns a conversation for those who say odd things: it may break, and then the next who asks gets another.
    pub(crate) async fn rough(&self) -> Result<&Session, Unmet> {
        self.rough.get(self).await
    }

    /// Lets the rules to come share other conversations if the server has ended these, or answers nothing there any more.
    pub(crate) async fn renew(&self) {
        self.shared.renew().await;
        self.rough.renew().await;
    }

    /// Begins a conversation of one's own: another process, another session.
    pub(crate) async fn fresh(&self) -> Result<Session, Unmet> {
        if self.failures.load(Ordering::Relaxed) >= FAILURES {
            let why = format!("the server began no conversation {FAILURES} times in a row");
            return Err(Unmet::not_tested(why));
        }
        let begun = self.begin().await;
        match &begun {
            Ok(_) => self.failures.store(0, Ordering::Relaxed),
            Err(_) => {
                self.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
        begun
    }

    async fn begin(&self) -> Result<Session, Unmet> {
        let mut session = self.silent().await?;
        session.begin_properly().await.map_err(Unmet::aside)?;
        Ok(session)
    }

    /// Opens a conversation in which nothing was said yet.
    pub(crate) async fn silent(&self) -> Result<Session, Unmet> {
        let speech = Speech::new(self.revision);
        Session::open(&self.target, &self.tape, speech, self.options.patience).await
    }

    /// Opens a conversation in another revision, or about which one to speak.
    pub(crate) async fn beside(&self, revision: Revision) -> Result<Session, Unmet> {
        let (speech, tape) = (Speech::new(revision), self.tape.beside());
        Session::open(&self.target, &tape, speech, self.options.patience).await
    }

    /// Returns what sends requests of HTTP, whether or not a conversation has begun.
    pub(crate) fn caller(&self) -> Result<Caller, Unmet> {
        match &self.target.way {
            Reach::Http(web) => Ok(Caller::new(web, &self.tape, self.options.patience)),
            Reach::Child(_) | Reach::Streams(_) => {
                Err(Unmet::not_applicable("there is no HTTP on this transport"))
            }
        }
    }

    /// Returns what the server says that it can do, for example `/tools/listChanged`.
    pub(crate) async fn capability(&self, pointer: &str) -> Result<Value, Unmet> {
        let capabilities = self.session().await?.capabilities();
        match capabilities.pointer(pointer) {
            Some(Value::Bool(false)) | None => {
                let name = pointer.trim_start_matches('/').replace('/', ".");
                let why = format!("the server does not declare the capability `{name}`");
                Err(Unmet::not_applicable(why))
            }
            Some(value) => Ok(value.clone()),
        }
    }

    /// Returns what the server has: its tools, resources and prompts.
    pub(crate) async fn discovered(&self) -> Result<&Discovered, Unmet> {
        let discovering = self.discovered.get_or_init(|| Discovered::of(self));
        discovering
            .await
            .as_ref()
            .map_err(|unmet| unmet.clone().aside())
    }

    /// Says what was left out, and why, as far as anybody looked.
    pub(crate) fn left_out(&self) -> Vec<String> {
        match self.discovered.get() {
            Some(Ok(discovered)) => discovered.left_out().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Returns the tools that the server lists.
    pub(crate) async fn tools(&self) -> Result<&List, Unmet> {
        let list = &self.discovered().await?.tools;
        list.items()?;
        match list.is_empty() {
            true => Err(Unmet::not_applicable("the server has no tools")),
            false => Ok(list),
        }
    }

    /// Returns the calls of tools that may be made: of those that say that they only read, and of those that the user allows.
    pub(crate) async fn callable(&self) -> Result<Vec<&Call>, Unmet> {
        self.tools().await?;
        let calls = self.discovered().await?.calls.iter();
        let calls: Vec<_> = calls.filter(|call| !call.only_as_task).collect();
        match calls.is_empty() {
            true => Err(Unmet::not_tested(
                "no tool says that it only reads and can be called; `--call` or `--allow-writes` would show",
            )),
            false => Ok(calls),
        }
    }

    /// Returns tasks that were begun once, with all that came of them.
    pub(crate) async fn lives(&self) -> Result<&Lives, Unmet> {
        let lives = self.lives.get_or_init(|| Lives::make(self)).await;
        lives.as_ref().map_err(|unmet| unmet.clone().aside())
    }

    /// Returns the first resources that the server lists, read once, with what came of it.
    pub(crate) async fn read(&self) -> Result<&[Read], Unmet> {
        let list = self.discovered().await?.resources.items()?;
        let session = self.session().await?;
        Ok(self
            .read
            .get_or_init(|| read_resources(session, list))
            .await)
    }

    /// Returns the first prompts that the server lists, got once, with what came of it.
    pub(crate) async fn prompted(&self) -> Result<&[Read], Unmet> {
        let list = self.discovered().await?.prompts.items()?;
        let session = self.session().await?;
        Ok(self
            .prompted
            .get_or_init(|| get_prompts(session, list))
            .await)
    }

    /// Returns trials of the tools that may be called, made once, with all that came of them.
    pub(crate) async fn trials(&self) -> Result<&Trials, Unmet> {
        let trials = self.trials.get_or_init(|| Trials::make(self)).await;
        trials.as_ref().map_err(|unmet| unmet.clone().aside())
    }
}

/// A conversation that rules share, and those that come after it when it has ended.
#[derive(Default)]
struct Shared {
    sessions: [OnceCell<Result<Session, Unmet>>; SESSIONS],
    current: AtomicUsize,
}

impl Shared {
    async fn get(&self, visit: &Visit) -> Result<&Session, Unmet> {
        let Some(session) = self.sessions.get(self.current.load(Ordering::Relaxed)) else {
            let why = format!(
                "the server has ended {SESSIONS} conversations, or answers no more in them"
            );
            return Err(Unmet::not_tested(why));
        };
        let session = session.get_or_init(|| visit.fresh()).await;
        session.as_ref().map_err(|unmet| unmet.clone().aside())
    }

    async fn renew(&self) {
        let current = self.current.load(Ordering::Relaxed);
        let session = self.sessions.get(current).and_then(OnceCell::get);
        if let Some(Ok(session)) = session
            && session.is_lost().await
        {
            self.current.store(current + 1, Ordering::Relaxed);
        }
    }
}
