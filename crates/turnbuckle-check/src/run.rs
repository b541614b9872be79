//! Runs the catalogue against somebody.

use std::time::Instant;

use turnbuckle_protocol::revision::Revision;

use crate::catalogue;
use crate::options::Options;
use crate::outcome::{Outcome, Unmet};
use crate::report::{Report, Ruling, Run, Verdict};
use crate::rule::{Check, Role, Rule};
use crate::target::Target;
use crate::visit::Visit;

/// Checks a server in every revision that it speaks.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn check_server(target: &Target, options: &Options) -> Report {
    let begun = Instant::now();
    let mut report = Report::new(Role::Server, &target.label);
    for &revision in &options.revisions {
        report.runs.push(visit(target, options, revision).await);
    }
    report.took = begun.elapsed();
    report
}

async fn visit(target: &Target, options: &Options, revision: Revision) -> Run {
    let visit = Visit::new(target, options, revision);
    let mut run = Run::new(revision, target.transport());
    if let Err(why) = spoken(&visit).await {
        run.not_spoken = Some(why);
        return run;
    }
    let rules: Vec<_> = catalogue::for_servers()
        .filter(|rule| options.wants(rule.id) && rule.binds_in(revision) && target.shows(rule.on))
        .collect();
    // What looks at the whole tape comes last.
    let (looking, asking): (Vec<_>, Vec<_>) = rules
        .into_iter()
        .partition(|rule| matches!(rule.check, Check::Look(_)));
    for rule in asking.into_iter().chain(looking) {
        let outcome = judge(rule, &visit).await;
        let verdict = Verdict::of(outcome, &visit.tape);
        run.rulings.push(Ruling::new(rule, revision, verdict));
    }
    run.rulings
        .sort_by_key(|ruling| catalogue::position(ruling.rule));
    run
}

async fn judge(rule: &'static Rule, visit: &Visit) -> Outcome {
    match rule.check {
        Check::Ask(check) => check(visit).await,
        Check::Look(check) => check(visit, &visit.tape),
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
        return opening.result().map(drop).map_err(|_| opening.describe());
    }
    match opening.value["result"]["protocolVersion"].as_str() {
        Some(agreed) if agreed == visit.revision.as_str() => Ok(()),
        Some(other) => Err(format!("the server chooses {other}")),
        None => Err("the server agrees on no revision".to_owned()),
    }
}
