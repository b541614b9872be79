//! Runs the catalog against a server, all revisions concurrently.

use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use tokio::{sync::Semaphore, task::JoinSet, time::Instant};
use turnbuckle_protocol::revision::Revision;

use crate::{
    catalog,
    engine::{
        check_context::CheckContext,
        outcome::{NotPassed, Outcome},
    },
    error::{self, CheckError},
    options::{CheckOptions, CheckProgress},
    report::{Report, RuleOutcome, RuleResult, RunReport},
    rule::{Area, Check, Role, Rule},
    server_rules::{CollectedMessages, STAYS_ALIVE, stays_alive},
    session::Session,
    target::ServerTarget,
};

/// Checks a server in every revision that it supports.
///
/// # Errors
///
/// If the server cannot be reached, requires authorization, redirects, or supports none of the revisions.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn check_server(
    target: &ServerTarget,
    options: &CheckOptions,
) -> Result<Report, CheckError> {
    let checked = check(target, options).await;
    target.stop_prewarmed();
    checked
}

async fn check(target: &ServerTarget, options: &CheckOptions) -> Result<Report, CheckError> {
    let started = Instant::now();
    let mut report = Report::new(Role::Server, &target.label);
    let mut revision_runs = run_revisions(target, options).await;
    let unauthorized = revision_runs
        .iter()
        .any(|revision_run| revision_run.unauthorized.is_some());
    if speaks_no_revision(&revision_runs)
        && !unauthorized
        && let Some(older) = target.http_sse_fallback()
    {
        let again = run_revisions(&older, options).await;
        if !speaks_no_revision(&again) {
            revision_runs = again;
        }
    }
    if speaks_no_revision(&revision_runs) {
        return Err(error::explain_no_revision(target, options, revision_runs).await);
    }
    for revision_run in revision_runs {
        report.add(revision_run.run, revision_run.skipped);
    }
    report.duration = started.elapsed();
    Ok(report)
}

/// The results of one revision.
pub(crate) struct RevisionRun {
    pub(crate) run: RunReport,
    /// The HTTP status with which the server required authorization.
    pub(crate) unauthorized: Option<u16>,
    /// The status and the location of a redirect.
    pub(crate) redirect: Option<(u16, String)>,
    skipped: Vec<String>,
}

fn speaks_no_revision(revision_runs: &[RevisionRun]) -> bool {
    let mut revision_runs = revision_runs.iter();
    revision_runs.all(|revision_run| revision_run.run.unsupported.is_some())
}

async fn run_revisions(target: &ServerTarget, options: &CheckOptions) -> Vec<RevisionRun> {
    let permits = Arc::new(RevisionPermits::new(target));
    let count = Arc::new(ProgressCounter::new(target, options));
    let mut running = JoinSet::new();
    for (at, &revision) in options.revisions.iter().enumerate() {
        let (target, options) = (target.clone(), options.clone());
        let (permits, count) = (Arc::clone(&permits), Arc::clone(&count));
        running.spawn(async move {
            let _permit = permits.semaphore.acquire().await;
            let run = run_revision(&target, &options, revision, &count, &permits);
            (at, run.await)
        });
    }
    let mut revision_runs = Vec::new();
    while let Some(joined) = running.join_next().await {
        match joined {
            Ok(revision_run) => revision_runs.push(revision_run),
            // A panic in a rule is a bug of the checker: do not hide it in a report.
            Err(error) => panic::resume_unwind(error.into_panic()),
        }
    }
    revision_runs.sort_by_key(|(at, _)| *at);
    revision_runs
        .into_iter()
        .map(|(_, revision_run)| revision_run)
        .collect()
}

/// Limits the revisions that are checked concurrently: to one until the pace of the server is known.
struct RevisionPermits {
    semaphore: Semaphore,
    is_raised: AtomicBool,
}

impl RevisionPermits {
    fn new(target: &ServerTarget) -> Self {
        let is_shared = target.starts_no_process();
        let permits = if is_shared {
            target.max_concurrent_revisions()
        } else {
            1
        };
        Self {
            semaphore: Semaphore::new(permits),
            is_raised: AtomicBool::new(is_shared),
        }
    }

    /// Raises the limit once, after the first session was opened.
    fn raise(&self, target: &ServerTarget) {
        if !self.is_raised.swap(true, Ordering::Relaxed) {
            let more = target.max_concurrent_revisions().saturating_sub(1);
            self.semaphore.add_permits(more);
        }
    }
}

async fn run_revision(
    target: &ServerTarget,
    options: &CheckOptions,
    revision: Revision,
    count: &ProgressCounter,
    permits: &RevisionPermits,
) -> RevisionRun {
    let ctx = CheckContext::new(target, options, revision);
    let mut run = RunReport::new(revision, target.transport());
    let mut rules = rules(target, options, revision);
    let (mut unauthorized, mut redirect) = (None, None);
    let supported = supports_revision(&ctx).await;
    permits.raise(target);
    if let Err(why) = supported {
        run.unsupported = Some(why);
        unauthorized = error::unauthorized(&ctx.transcript);
        redirect = error::redirect(&ctx.transcript);
        // Rules about authorization also work without credentials.
        let all = rules.len();
        rules.retain(|rule| unauthorized.is_some() && rule.area == Area::Authorization);
        count.skip(all - rules.len());
        ctx.transcript.clear_server_end();
    }
    // Rules that read the whole transcript run last.
    let (passive, active): (Vec<_>, Vec<_>) = rules
        .into_iter()
        .partition(|rule| matches!(rule.check, Check::Passive(_)));
    for rule in active.into_iter().chain(passive) {
        count.report_start(options, revision, rule);
        ctx.replace_ended_sessions().await;
        let outcome = evaluate(rule, &ctx).await;
        let outcome = RuleOutcome::from_outcome(outcome, &ctx.transcript);
        run.results.push(RuleResult::new(rule, revision, outcome));
    }
    add_server_end(&mut run, &ctx);
    run.results
        .sort_by_key(|result| catalog::position(result.rule));
    RevisionRun {
        run,
        unauthorized,
        redirect,
        skipped: ctx.skipped(),
    }
}

/// Reports the end of the server even if the rule for it is not selected: the other results depend on it.
fn add_server_end(run: &mut RunReport, ctx: &CheckContext) {
    let is_rule = |result: &RuleResult| result.rule.id == STAYS_ALIVE;
    if run.unsupported.is_some() || run.results.iter().any(is_rule) {
        return;
    }
    if let (Some(rule), Err(violation @ NotPassed::Violation { .. })) =
        (catalog::find(STAYS_ALIVE), stays_alive(&ctx.transcript))
    {
        let outcome = RuleOutcome::from_outcome(Err(violation), &ctx.transcript);
        let result = RuleResult::new(rule, ctx.revision, outcome);
        run.results.push(result);
    }
}

/// Returns the rules to run in a revision.
fn rules(target: &ServerTarget, options: &CheckOptions, revision: Revision) -> Vec<&'static Rule> {
    catalog::for_servers()
        .filter(|rule| {
            options.selects(rule)
                && rule.applies_in(revision)
                && target.can_observe(rule.transports)
        })
        .collect()
}

async fn evaluate(rule: &'static Rule, ctx: &CheckContext) -> Outcome {
    match rule.check {
        Check::Active(check) => {
            if let Some(end) = ctx.unprovoked_end() {
                return Err(NotPassed::not_tested(end.summary()));
            }
            report_end_once(rule, check(ctx).await, ctx)
        }
        Check::Passive(check) => {
            if ctx.unprovoked_end().is_none() {
                ctx.schema_samples
                    .get_or_init(|| CollectedMessages::collect(ctx))
                    .await;
            }
            check(ctx, &ctx.transcript)
        }
        Check::Unset | Check::Scenarios(..) => {
            Err(NotPassed::not_tested("the rule does not apply to servers"))
        }
    }
}

/// Makes sure that the end of the server is reported once.
///
/// A rule about what the server survives reports it, which is then forgotten. Other rules are not tested: the end is no
/// violation of what they require.
fn report_end_once(rule: &Rule, outcome: Outcome, ctx: &CheckContext) -> Outcome {
    let end = ctx.transcript.server_end();
    match (outcome, end) {
        (Err(NotPassed::Violation { observed, .. }), Some(end))
            if observed.contains(end.summary())
                && end.is_provoked
                && rule.area != Area::Robustness =>
        {
            Err(NotPassed::not_tested(end.summary()))
        }
        (Err(violation @ NotPassed::Violation { .. }), Some(end)) => {
            if let NotPassed::Violation { observed, .. } = &violation
                && observed.contains(end.summary())
            {
                ctx.transcript.clear_server_end();
            }
            Err(violation)
        }
        (outcome, _) => outcome,
    }
}

/// Checks that the server supports the revision; returns the reason if not.
async fn supports_revision(ctx: &CheckContext) -> Result<(), String> {
    let session = match ctx.session().await {
        Ok(session) => session,
        Err(
            NotPassed::Violation { observed: why, .. }
            | NotPassed::NotApplicable(why)
            | NotPassed::NotTested(why),
        ) => {
            return Err(why);
        }
    };
    let opening = session
        .opening
        .as_ref()
        .expect("an initialized session has an opening response");
    if !session.request_builder.has_handshake() {
        return match opening.result() {
            Ok(_) => Ok(()),
            // `server/discover` may be missing although the revision is supported.
            Err(_) if responds_to_lists(session).await => Ok(()),
            Err(_) => Err(opening.describe()),
        };
    }
    match opening.value["result"]["protocolVersion"].as_str() {
        Some(negotiated) if negotiated == ctx.revision.as_str() => Ok(()),
        Some(other) => Err(format!("the server responds with {other}")),
        None => Err("the server responds without a revision".to_owned()),
    }
}

/// The minimum wait for a response that may have arrived already.
const MIN_RESPONSE_WAIT: Duration = Duration::from_millis(100);

/// Returns whether a server without `server/discover` responds to lists like a stateless revision.
async fn responds_to_lists(session: &Session) -> bool {
    let mut pending_responses = Vec::new();
    for method in ["tools/list", "resources/list", "prompts/list"] {
        pending_responses.extend(session.send_request(method, Value::Null).await);
    }
    // All three share one timeout.
    let until = Instant::now() + session.pace.response_timeout();
    for pending in pending_responses {
        let left = until.saturating_duration_since(Instant::now());
        let response = session
            .wait_response_within(pending, left.max(MIN_RESPONSE_WAIT))
            .await;
        if response.is_ok_and(|response| response.value["result"]["resultType"].is_string()) {
            return true;
        }
    }
    false
}

/// Progress over all revisions.
struct ProgressCounter {
    done: AtomicUsize,
    total: usize,
}

impl ProgressCounter {
    fn new(target: &ServerTarget, options: &CheckOptions) -> Self {
        let revisions = options.revisions.iter();
        let rules = revisions.map(|&revision| rules(target, options, revision).len());
        Self {
            done: AtomicUsize::new(0),
            total: rules.sum(),
        }
    }

    fn report_start(&self, options: &CheckOptions, revision: Revision, rule: &'static Rule) {
        let done = self.done.fetch_add(1, Ordering::Relaxed);
        options.report_progress(CheckProgress {
            done,
            total: self.total,
            revision,
            rule: rule.id,
            area: rule.area,
        });
    }

    fn skip(&self, rules: usize) {
        self.done.fetch_add(rules, Ordering::Relaxed);
    }
}
