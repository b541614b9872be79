//! The calls that are all open at once, and end at one moment.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use turnbuckle_bench::{
    Failure,
    connection::{Call, Connection, text_of},
};

use crate::{
    http2::{STREAMS, Shared},
    plan::Plan,
    report::Report,
};

/// How many connections are being opened at a time; more would only fill the listener's queue.
const OPENING: usize = 128;
/// Source addresses to connect from, 127.0.0.1 and its neighbours.
const SOURCES: usize = 4;
/// How long after their moment answers may still come in.
const GRACE: Duration = Duration::from_secs(120);

/// Calls of `wait`, half of them modern, half in the sessions given.
#[derive(Debug)]
pub(crate) struct Held {
    calls: JoinSet<Result<(), Failure>>,
    count: usize,
    /// When the server will answer them all.
    moment: Instant,
    sent: watch::Receiver<usize>,
    tally: Arc<Tally>,
}

/// How many calls are over.
#[derive(Debug, Default)]
struct Tally {
    answered: AtomicUsize,
    failed: AtomicUsize,
}

/// What every call needs to know.
#[derive(Debug)]
struct Shelf {
    address: SocketAddr,
    sessions: Arc<[String]>,
    moment: Instant,
    opening: Semaphore,
    sent: watch::Sender<usize>,
    tally: Arc<Tally>,
}

impl Held {
    /// Begins to open the calls of `plan`.
    pub(crate) fn open(address: SocketAddr, plan: &Plan, sessions: Arc<[String]>) -> Held {
        let (sender, sent) = watch::channel(0);
        let moment = Instant::now() + plan.hold;
        let tally = Arc::new(Tally::default());
        let shelf = Arc::new(Shelf {
            address,
            sessions,
            moment,
            opening: Semaphore::new(OPENING),
            sent: sender,
            tally: tally.clone(),
        });
        let mut calls = JoinSet::new();
        let own = plan.calls - plan.multiplexed;
        for index in 0..own {
            calls.spawn(noting_failure(
                shelf.clone(),
                on_its_own(shelf.clone(), index),
            ));
        }
        for first in (own..plan.calls).step_by(STREAMS) {
            let indices = first..plan.calls.min(first + STREAMS);
            calls.spawn(noting_failure(
                shelf.clone(),
                together(shelf.clone(), indices.collect()),
            ));
        }
        Held {
            calls,
            count: plan.calls,
            moment,
            sent,
            tally,
        }
    }

    /// Waits until every call is on the wire, or one is over too early.
    pub(crate) async fn all_sent(&self) -> Result<(), Failure> {
        let mut sent = self.sent.clone();
        let all_or_over = sent.wait_for(|sent| *sent == self.count || self.over() > 0);
        match timeout_at(self.moment, all_or_over).await {
            Ok(_) => Ok(()),
            Err(_) => Err("the calls could not be opened in time: raise --hold".into()),
        }
    }

    /// How many calls are over, well or badly.
    pub(crate) fn over(&self) -> usize {
        self.answered() + self.tally.failed.load(Ordering::Relaxed)
    }

    fn answered(&self) -> usize {
        self.tally.answered.load(Ordering::Relaxed)
    }

    /// Waits for every answer and reports those that are wrong or missing.
    pub(crate) async fn finish(mut self, report: &mut Report) {
        let mut faults = BTreeMap::<String, usize>::new();
        while let Ok(Some(call)) = timeout_at(self.moment + GRACE, self.calls.join_next()).await {
            if let Err(error) = call.unwrap_or_else(|error| Err(error.into())) {
                *faults.entry(error.to_string()).or_default() += 1;
            }
        }
        let drained = self.moment.elapsed().as_secs_f64();
        report.figure("seconds until all were answered", drained);
        report.figure(
            "calls answered per second then",
            self.answered() as f64 / drained,
        );
        let missing = self.count - self.answered();
        if missing > 0 {
            report.fault(format!(
                "{missing} of {} held calls got no right answer",
                self.count
            ));
        }
        let kinds = faults.iter().take(10);
        report
            .faults
            .extend(kinds.map(|(error, times)| format!("{times} ×: {error}")));
    }
}

async fn noting_failure(
    shelf: Arc<Shelf>,
    call: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let outcome = call.await;
    if outcome.is_err() {
        shelf.tally.failed.fetch_add(1, Ordering::Relaxed);
        shelf.sent.send_modify(|_| {});
    }
    outcome
}

async fn on_its_own(shelf: Arc<Shelf>, index: usize) -> Result<(), Failure> {
    let opening = shelf.opening.acquire().await?;
    let source = Ipv4Addr::new(127, 0, 0, 1 + (index % SOURCES) as u8);
    let mut connection = Connection::open_from(source, shelf.address).await?;
    connection.send_call(&shelf.call(index)).await?;
    drop(opening);
    shelf.sent.send_modify(|sent| *sent += 1);
    shelf.check(index, &connection.answer().await?)
}

async fn together(shelf: Arc<Shelf>, indices: Vec<usize>) -> Result<(), Failure> {
    let mut connection = Shared::open(shelf.address).await?;
    let mut answers = JoinSet::new();
    for index in indices {
        let answer = connection.send_call(&shelf.call(index)).await?;
        shelf.sent.send_modify(|sent| *sent += 1);
        let shelf = shelf.clone();
        answers.spawn(async move { shelf.check(index, &answer.await?) });
    }
    let mut outcome = Ok(());
    while let Some(answer) = answers.join_next().await {
        outcome = outcome.and(answer?);
    }
    outcome
}

impl Shelf {
    fn call(&self, index: usize) -> Call<'_> {
        let left = self
            .moment
            .saturating_duration_since(Instant::now())
            .as_millis();
        let session = (index % 2 == 1).then(|| index / 2 % self.sessions.len().max(1));
        Call {
            id: index as u64,
            tool: "wait",
            arguments: format!(r#"{{"ms":{left},"tag":"{}"}}"#, tag(index)),
            session: session
                .and_then(|at| self.sessions.get(at))
                .map(String::as_str),
        }
    }

    fn check(&self, index: usize, answer: &str) -> Result<(), Failure> {
        if text_of(answer, index as u64)? != tag(index) {
            return Err(format!("call {index} got the answer of another: {answer:.300}").into());
        }
        self.tally.answered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// What a call must get back; nobody else's is the same.
fn tag(index: usize) -> String {
    format!("held-{index:x}-{:x}", index.wrapping_mul(0x9e37_79b9))
}
