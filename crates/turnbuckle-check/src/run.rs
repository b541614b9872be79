//! Runs the catalogue against a server: all revisions side by side.

use std::panic;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use turnbuckle_protocol::revision::Revision;

use crate::catalogue;
use crate::options::{Options, Progress};
use crate::outcome::{Outcome, Unmet};
use crate::reach::{self, NotChecked};
use crate::report::{Report, Ruling, Run, Verdict};
use crate::rule::{Area, Check, Role, Rule};
use crate::server::Gathered;
use crate::session::Session;
use crate::target::Target;
use crate::visit::Visit;

/// Checks a server in every revision that it speaks.
///
/// # Errors
///
/// If there is nothing to report on: nobody is there, the server wants to know who asks, or it speaks none of the
/// revisions.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn check_server(target: &Target, options: &Options) -> Result<Report, NotChecked> {
    let checked = check(target, options).await;
    target.dismiss();
    checked
}

async fn check(target: &Target, options: &Options) -> Result<Report, NotChecked> {
    let begun = Instant::now();
    let mut report = Report::new(Role::Server, &target.label);
    let mut visits = side_by_side(target, options).await;
    let denied = visits.iter().any(|visited| visited.denied.is_some());
    if is_silent(&visits)
        && !denied
        && let Some(older) = target.older()
    {
        let again = side_by_side(&older, options).await;
        if !is_silent(&again) {
            visits = again;
        }
    }
    if is_silent(&visits) {
        return Err(reach::why_nothing_was_spoken(target, options, visits).await);
    }
    for visited in visits {
        report.add(visited.run, visited.left_out);
    }
    report.took = begun.elapsed();
    Ok(report)
}

/// What came of a visit.
pub(crate) struct Visited {
    pub(crate) run: Run,
    /// The status by which the server said that it does not know us.
    pub(crate) denied: Option<u16>,
    /// The status by which it said that it is elsewhere, and where.
    pub(crate) moved: Option<(u16, String)>,
    left_out: Vec<String>,
}

fn is_silent(visits: &[Visited]) -> bool {
    let mut visits = visits.iter();
    visits.all(|visited| visited.run.not_spoken.is_some())
}

async fn side_by_side(target: &Target, options: &Options) -> Vec<Visited> {
    let gate = Arc::new(Semaphore::new(target.at_once()));
    let count = Arc::new(Count::new(target, options));
    let mut running = JoinSet::new();
    for (at, &revision) in options.revisions.iter().enumerate() {
        let (target, options) = (target.clone(), options.clone());
        let (gate, count) = (Arc::clone(&gate), Arc::clone(&count));
        running.spawn(async move {
            let _turn = gate.acquire_owned().await;
            (at, visit(&target, &options, revision, &count).await)
        });
    }
    let mut visits = Vec::new();
    while let Some(joined) = running.join_next().await {
        match joined {
            Ok(visited) => visits.push(visited),
            // A rule that panics is a mistake of ours, and not to be hidden in a report.
            Err(error) => panic::resume_unwind(error.into_panic()),
        }
    }
    visits.sort_by_key(|(at, _)| *at);
    visits.into_iter().map(|(_, visited)| visited).collect()
}

async fn visit(target: &Target, options: &Options, revision: Revision, count: &Count) -> Visited {
    let visit = Visit::new(target, options, revision);
    let mut run = Run::new(revision, target.transport());
    let mut rules = rules(target, options, revision);
    let (mut denied, mut moved) = (None, None);
    if let Err(why) = spoken(&visit).await {
        run.not_spoken = Some(why);
        denied = reach::denied(&visit.tape);
        moved = reach::moved(&visit.tape);
        // How a server treats those whom it does not know can be seen from outside.
        let all = rules.len();
        rules.retain(|rule| denied.is_some() && rule.area == Area::Authorization);
        count.skip(all - rules.len());
    }
    // What looks at the whole tape comes last.
    let (looking, asking): (Vec<_>, Vec<_>) = rules
        .into_iter()
        .partition(|rule| matches!(rule.check, Check::Look(_)));
    for rule in asking.into_iter().chain(looking) {
        count.begin(options, revision, rule);
        visit.renew().await;
        let outcome = judge(rule, &visit).await;
        let verdict = Verdict::of(outcome, &visit.tape);
        run.rulings.push(Ruling::new(rule, revision, verdict));
    }
    run.rulings
        .sort_by_key(|ruling| catalogue::position(ruling.rule));
    Visited {
        run,
        denied,
        moved,
        left_out: visit.left_out(),
    }
}

/// Returns the rules that are looked at in a revision.
fn rules(target: &Target, options: &Options, revision: Revision) -> Vec<&'static Rule> {
    catalogue::for_servers()
        .filter(|rule| options.wants(rule) && rule.binds_in(revision) && target.shows(rule.on))
        .collect()
}

async fn judge(rule: &'static Rule, visit: &Visit) -> Outcome {
    match rule.check {
        Check::Ask(check) => check(visit).await,
        Check::Look(check) => {
            visit.gathered.get_or_init(|| Gathered::of(visit)).await;
            check(visit, &visit.tape)
        }
        Check::Unset | Check::Watch(..) => Err(Unmet::not_tested("nobody knows how")),
    }
}

/// Finds out whether the server speaks the revision; says why not.
async fn spoken(visit: &Visit) -> Result<(), String> {
    let session = match visit.session().await {
        Ok(session) => session,
        Err(
            Unmet::Broken { what: why, .. } | Unmet::NotApplicable(why) | Unmet::NotTested(why),
        ) => {
            return Err(why);
        }
    };
    let opening = session
        .opening
        .as_ref()
        .expect("a session that has begun has an opening");
    if !session.speech.has_handshake() {
        return match opening.result() {
            Ok(_) => Ok(()),
            // That it does not say who it is does not mean that it does not speak.
            Err(_) if lists_something(session).await => Ok(()),
            Err(_) => Err(opening.describe()),
        };
    }
    match opening.value["result"]["protocolVersion"].as_str() {
        Some(agreed) if agreed == visit.revision.as_str() => Ok(()),
        Some(other) => Err(format!("the server chooses {other}")),
        None => Err("the server agrees on no revision".to_owned()),
    }
}

/// How long an answer is waited for that would have come already.
const MOMENT: Duration = Duration::from_millis(100);

/// Says whether a server without `server/discover` answers in the way of a revision without handshake.
async fn lists_something(session: &Session) -> bool {
    let mut asked = Vec::new();
    for method in ["tools/list", "resources/list", "prompts/list"] {
        asked.extend(session.begin(method, Value::Null).await);
    }
    // Whoever answers none of them is waited for only once.
    let until = Instant::now() + session.patience;
    for pending in asked {
        let left = until.saturating_duration_since(Instant::now());
        let answer = session.answer_within(pending, left.max(MOMENT)).await;
        if answer.is_ok_and(|answer| answer.value["result"]["resultType"].is_string()) {
            return true;
        }
    }
    false
}

/// How far all visits together have come.
struct Count {
    done: AtomicUsize,
    total: usize,
}

impl Count {
    fn new(target: &Target, options: &Options) -> Self {
        let revisions = options.revisions.iter();
        let rules = revisions.map(|&revision| rules(target, options, revision).len());
        Self {
            done: AtomicUsize::new(0),
            total: rules.sum(),
        }
    }

    fn begin(&self, options: &Options, revision: Revision, rule: &'static Rule) {
        let done = self.done.fetch_add(1, Ordering::Relaxed);
        options.tell(Progress {
            done,
            total: self.total,
            revision,
            rule: rule.id,
        });
    }

    fn skip(&self, rules: usize) {
        self.done.fetch_add(rules, Ordering::Relaxed);
    }
}
