//! The calls that are all in flight at once, and end at the same moment.

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

use super::{
    http2::{STREAMS, Shared},
    plan::Plan,
    report::Report,
};

/// The number of connections that are opened concurrently; more would only fill the listener's queue.
const OPENING: usize = 128;
/// The number of source addresses to connect from, starting at 127.0.0.1.
const SOURCES: usize = 4;
/// The longest delay of a response after its due time.
const RESPONSE_DEADLINE: Duration = Duration::from_secs(120);

/// Calls of `wait`, half of them modern, half in the given sessions.
#[derive(Debug)]
pub(crate) struct SlowCalls {
    calls: JoinSet<Result<(), Failure>>,
    count: usize,
    /// The time at which the server responds to all of them.
    moment: Instant,
    sent: watch::Receiver<usize>,
    tally: Arc<Tally>,
}

/// The number of finished calls.
#[derive(Debug, Default)]
struct Tally {
    answered: AtomicUsize,
    failed: AtomicUsize,
}

/// The state that all calls share.
#[derive(Debug)]
struct SharedState {
    address: SocketAddr,
    sessions: Arc<[String]>,
    moment: Instant,
    opening: Semaphore,
    sent: watch::Sender<usize>,
    tally: Arc<Tally>,
}

impl SlowCalls {
    /// Starts to open the calls of `plan`.
    pub(crate) fn open(address: SocketAddr, plan: &Plan, sessions: Arc<[String]>) -> SlowCalls {
        let (sender, sent) = watch::channel(0);
        let moment = Instant::now() + plan.hold;
        let tally = Arc::new(Tally::default());
        let state = Arc::new(SharedState {
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
            calls.spawn(record_failure(
                state.clone(),
                on_its_own(state.clone(), index),
            ));
        }
        for first in (own..plan.calls).step_by(STREAMS) {
            let indices = first..plan.calls.min(first + STREAMS);
            calls.spawn(record_failure(
                state.clone(),
                together(state.clone(), indices.collect()),
            ));
        }
        SlowCalls {
            calls,
            count: plan.calls,
            moment,
            sent,
            tally,
        }
    }

    /// Waits until every call is sent, or one ends too early.
    pub(crate) async fn all_sent(&self) -> Result<(), Failure> {
        let mut sent = self.sent.clone();
        let all_or_over = sent.wait_for(|sent| *sent == self.count || self.over() > 0);
        match timeout_at(self.moment, all_or_over).await {
            Ok(_) => Ok(()),
            Err(_) => Err("the calls could not be opened in time: raise --hold".into()),
        }
    }

    /// Returns the number of finished calls, failed ones included.
    pub(crate) fn over(&self) -> usize {
        self.answered() + self.tally.failed.load(Ordering::Relaxed)
    }

    fn answered(&self) -> usize {
        self.tally.answered.load(Ordering::Relaxed)
    }

    /// Waits for every response and reports those that are wrong or missing.
    pub(crate) async fn finish(mut self, report: &mut Report) {
        let mut faults = BTreeMap::<String, usize>::new();
        while let Ok(Some(call)) =
            timeout_at(self.moment + RESPONSE_DEADLINE, self.calls.join_next()).await
        {
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
                "{missing} of {} held calls did not get the right response",
                self.count
            ));
        }
        let kinds = faults.iter().take(10);
        report
            .faults
            .extend(kinds.map(|(error, times)| format!("{times} ×: {error}")));
    }
}

async fn record_failure(
    state: Arc<SharedState>,
    call: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let outcome = call.await;
    if outcome.is_err() {
        state.tally.failed.fetch_add(1, Ordering::Relaxed);
        state.sent.send_modify(|_| {});
    }
    outcome
}

async fn on_its_own(state: Arc<SharedState>, index: usize) -> Result<(), Failure> {
    let opening = state.opening.acquire().await?;
    let source = Ipv4Addr::new(127, 0, 0, 1 + (index % SOURCES) as u8);
    let mut connection = Connection::open_from(source, state.address).await?;
    connection.send_call(&state.call(index)).await?;
    drop(opening);
    state.sent.send_modify(|sent| *sent += 1);
    state.check(index, &connection.response_text().await?)
}

async fn together(state: Arc<SharedState>, indices: Vec<usize>) -> Result<(), Failure> {
    let mut connection = Shared::open(state.address).await?;
    let mut responses = JoinSet::new();
    for index in indices {
        let response = connection.send_call(&state.call(index)).await?;
        state.sent.send_modify(|sent| *sent += 1);
        let state = state.clone();
        responses.spawn(async move { state.check(index, &response.await?) });
    }
    let mut outcome = Ok(());
    while let Some(response) = responses.join_next().await {
        outcome = outcome.and(response?);
    }
    outcome
}

impl SharedState {
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

    fn check(&self, index: usize, response: &str) -> Result<(), Failure> {
        if text_of(response, index as u64)? != tag(index) {
            return Err(
                format!("call {index} got the response of another: {response:.300}").into(),
            );
        }
        self.tally.answered.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Returns the text that a call must get back; it is unique.
fn tag(index: usize) -> String {
    format!("held-{index:x}-{:x}", index.wrapping_mul(0x9e37_79b9))
}
