//! Runs a client against the servers that are played for it, and judges what it said.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use turnbuckle_protocol::revision::Revision;

use super::command::Command;
use super::part::{ENDPOINT, Part};
use super::scene::Scene;
use super::stage::{MOST, Stage};
use super::take::{Ending, Take, Takes};
use super::target::{Carrier, ClientTarget, Dial, Runner, Way};
use crate::catalogue;
use crate::options::Options;
use crate::outcome::{Outcome, Unmet};
use crate::reach::{NotChecked, chain};
use crate::report::{Report, Ruling, Run, Verdict};
use crate::rule::{Check, Role, Rule};
use crate::tape::Tape;

/// Where a server within this process is.
const ORIGIN: &str = "http://127.0.0.1";

/// How many runs of a program go on side by side.
const AT_ONCE: usize = 3;

/// Checks a client in every revision that it speaks.
///
/// # Errors
///
/// If there is nothing to report on: the client cannot be started, it never connects, or it speaks none of the
/// revisions.
///
/// # Panics
///
/// Outside of a tokio runtime with time and I/O enabled.
pub async fn check_client(target: &ClientTarget, options: &Options) -> Result<Report, NotChecked> {
    let begun = std::time::Instant::now();
    let mut report = Report::new(Role::Client, &target.label);
    let met = side_by_side(target, options).await;
    for (run, left_out) in met {
        report.add(run, left_out);
    }
    if report.runs.iter().all(|run| run.not_spoken.is_some()) {
        let reason = |run: &Run| (run.revision, run.not_spoken.clone().unwrap_or_default());
        let reasons = report.runs.iter().map(reason);
        return Err(NotChecked::ClientSpeaksNothing(reasons.collect()));
    }
    report.took = begun.elapsed();
    Ok(report)
}

/// What came of one revision, and what was left out.
type Met = (Run, Vec<String>);

async fn side_by_side(target: &ClientTarget, options: &Options) -> Vec<Met> {
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for (at, &revision) in options.revisions.iter().enumerate() {
        let (target, options, gate) = (target.clone(), options.clone(), gate.clone());
        running.spawn(async move {
            let _turn = gate.acquire_owned().await;
            (at, meet(&target, &options, revision).await)
        });
    }
    let mut runs = running.join_all().await;
    runs.sort_by_key(|(at, _)| *at);
    runs.into_iter().map(|(_, met)| met).collect()
}

async fn meet(target: &ClientTarget, options: &Options, revision: Revision) -> Met {
    let carrier = target.carrier();
    let http_sse = revision < Revision::V2025_03_26;
    let tape = Tape::default();
    let mut takes = Takes::new(revision);
    let mut run = Run::new(revision, target.transport(http_sse));
    let mut left_out = Vec::new();
    let rules: Vec<_> = catalogue::for_clients()
        .filter(|rule| options.wants(rule) && rule.binds_in(revision))
        .filter(|rule| target.shows(rule.on, http_sse))
        .collect();
    let wanted: HashSet<_> = rules.iter().flat_map(|rule| scenes(rule)).collect();
    for scene in Scene::ALL {
        let plain = scene == Scene::Plain;
        if !scene.is_played(revision, carrier) || !(plain || wanted.contains(&scene)) {
            continue;
        }
        let take = play(
            target,
            options,
            Part::prepared(scene, revision, carrier),
            &tape,
        )
        .await;
        if take.ending == Ending::Flooding {
            left_out.push(format!(
                "{revision}: a run in which the client said too much was ended after {MOST} messages, or 64 MiB"
            ));
        }
        if let (true, Err(why)) = (plain, spoken(&take, options)) {
            run.not_spoken = Some(why);
            return (run, left_out);
        }
        takes.push(take);
    }
    for rule in rules {
        let verdict = Verdict::of(judge(rule, &takes), &tape);
        run.rulings.push(Ruling::new(rule, revision, verdict));
    }
    left_out.dedup();
    (run, left_out)
}

/// Returns the scenes that a rule wants to see.
fn scenes(rule: &Rule) -> &'static [Scene] {
    match rule.check {
        Check::Watch(scenes, _) => scenes,
        Check::Unset | Check::Ask(_) | Check::Look(_) => &[],
    }
}

fn judge(rule: &Rule, takes: &Takes) -> Outcome {
    match rule.check {
        Check::Watch(_, look) => look(takes),
        Check::Unset | Check::Ask(_) | Check::Look(_) => Err(Unmet::not_tested("nobody knows how")),
    }
}

/// Plays a scene for a client, once.
async fn play(
    target: &ClientTarget,
    options: &Options,
    part: impl FnOnce(String) -> Part,
    tape: &Tape,
) -> Take {
    let from = tape.len();
    let patience = options.quiet * 2 / 3;
    let (stage, ending) = match &target.way {
        Way::Within(_, runner) => {
            let stage = Stage::new(part(ORIGIN.to_owned()), tape, patience);
            let ending = within(runner, &stage, options).await;
            (stage, ending)
        }
        Way::Command(command) => outside(command, part, tape, options, patience).await,
    };
    stage.close().await;
    let ending = match stage.is_flooded() {
        true => Ending::Flooding,
        false => ending,
    };
    let entries = tape.all().split_off(from);
    let part = &stage.part;
    Take::new(part.scene, part.revision, entries, ending, part.notes())
}

async fn within(runner: &Runner, stage: &Arc<Stage>, options: &Options) -> Ending {
    let (dial, mut arriving) = Dial::new(format!("{ORIGIN}{ENDPOINT}"));
    let welcoming = async {
        while let Some(stream) = arriving.recv().await {
            stage.welcome(stream);
        }
        std::future::pending::<()>().await;
    };
    let running = runner(dial);
    let ending = tokio::select! {
        () = running => Ending::Finished,
        ending = patience(stage, options) => ending,
        () = welcoming => Ending::Finished,
    };
    while let Ok(stream) = arriving.try_recv() {
        stage.welcome(stream);
    }
    stage.settle().await;
    ending
}

async fn outside(
    command: &Command,
    part: impl FnOnce(String) -> Part,
    tape: &Tape,
    options: &Options,
    patience_for_answers: Duration,
) -> (Arc<Stage>, Ending) {
    let listening = TcpListener::bind(("127.0.0.1", 0)).await;
    let bound = listening.and_then(|listener| Ok((listener.local_addr()?, listener)));
    let (address, listener) = match bound {
        Ok(bound) => bound,
        Err(error) => {
            let stage = Stage::new(part(ORIGIN.to_owned()), tape, patience_for_answers);
            return (stage, Ending::Unstarted(error.to_string()));
        }
    };
    let origin = format!("http://{address}");
    let given = match command.carrier() {
        Carrier::Http => format!("{origin}{ENDPOINT}"),
        Carrier::Lines => address.to_string(),
    };
    let stage = Stage::new(part(origin), tape, patience_for_answers);
    let started = match command.child(&given).start() {
        Ok(started) => started,
        Err(error) => return (stage, Ending::Unstarted(chain(&error))),
    };
    let (process, input, mut output) = (started.process, started.input, started.output);
    drop(input);
    // Nobody reads what the client prints, but it is not to wait for that.
    let draining =
        tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
    let (sender, mut arriving) = mpsc::channel(16);
    let accepting = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let _ = stream.set_nodelay(true);
            if sender.send(stream).await.is_err() {
                return;
            }
        }
    });
    let welcoming = async {
        while let Some(stream) = arriving.recv().await {
            stage.welcome(stream);
        }
        std::future::pending::<()>().await;
    };
    let ending = tokio::select! {
        died = process.died() => Ending::Exited(died),
        ending = patience(&stage, options) => ending,
        () = welcoming => Ending::Finished,
    };
    if let Ending::Exited(_) = ending {
        while let Ok(stream) = arriving.try_recv() {
            stage.welcome(stream);
        }
        stage.settle().await;
    }
    process.end().await;
    accepting.abort();
    draining.abort();
    (stage, ending)
}

/// Waits until the client has said nothing for so long, or has taken too long.
async fn patience(stage: &Stage, options: &Options) -> Ending {
    let end = Instant::now() + options.longest;
    loop {
        if stage.is_flooded() {
            return Ending::Flooding;
        }
        let quiet = stage.last_heard().map(|last| last + options.quiet);
        let until = quiet.map_or(end, |quiet| quiet.min(end));
        if Instant::now() >= until {
            return match Instant::now() >= end {
                true => Ending::Late,
                false => Ending::Quiet,
            };
        }
        // What is said meanwhile moves the end, and a client that was silent so far begins at any time.
        let step = Instant::now() + options.quiet / 8;
        sleep_until(until.min(step)).await;
    }
}

/// Finds out whether the client speaks the revision; says why not.
fn spoken(take: &Take, options: &Options) -> Result<(), String> {
    if let Ending::Unstarted(why) = &take.ending {
        return Err(format!("the client could not be started: {why}"));
    }
    if take.entries.is_empty() {
        return Err(match &take.ending {
            Ending::Exited(died) if died.last_words.is_empty() => {
                format!("the client never connected, and {}", died.exit)
            }
            Ending::Exited(died) => format!(
                "the client never connected, and {}, after it said: {}",
                died.exit, died.last_words
            ),
            Ending::Late => format!("the client did not connect within {:?}", options.longest),
            _ => "the client never connected".to_owned(),
        });
    }
    let modern = take.speaks >= Revision::MODERN;
    let Some(first) = take.requests().next() else {
        return Err("the client asked nothing".into());
    };
    let mut hellos = take.asked("initialize").peekable();
    let tried = hellos.peek().is_some();
    let answered = hellos.find(|hello| take.answer(hello).is_some());
    match (modern, answered) {
        (true, _) if first.method() != Some("initialize") => Ok(()),
        (true, _) => Err("the client begins with a handshake".into()),
        (false, None) if tried => Err("the client never came to a handshake".into()),
        (false, None) => Err("the client begins without a handshake, and tries none".into()),
        (false, Some(hello)) => {
            let later = |number: usize| number > hello.number;
            let goes_on = |method: Option<&str>| {
                !matches!(
                    method,
                    Some("initialize" | "server/discover" | "notifications/cancelled")
                )
            };
            let on = take
                .said()
                .iter()
                .any(|said| later(said.number) && goes_on(said.method()));
            match on {
                true => Ok(()),
                false => {
                    let offered = hello.params()["protocolVersion"].as_str();
                    Err(format!(
                        "the client offers {} and says nothing more when the server chooses {}",
                        offered.unwrap_or("nothing"),
                        take.speaks
                    ))
                }
            }
        }
    }
}
