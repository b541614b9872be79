//! Holds very many slow calls and idle sessions on one server process, and checks every answer.
//!
//! Latency and rates are printed, never judged: they belong to the machine. What is judged is that
//! each answer is there and belongs to its call, that calls which wait or block hold up no other, that
//! all were held at once, and how much memory the server took.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

mod connection;
mod descriptors;
mod held;
mod http2;
mod plan;
mod probe;
mod report;
mod sessions;

use std::{process::ExitCode, time::Instant};

use turnbuckle_bench::{Failure, options::Options, process::ServerProcess};

use crate::{
    held::Held,
    plan::Plan,
    report::{Report, bytes_each},
};

fn main() -> ExitCode {
    let outcome = Plan::from_options(Options::from_process()).and_then(|plan| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?;
        let report = runtime.block_on(run(&plan))?;
        println!(
            "{}",
            if plan.json {
                report.json()
            } else {
                report.table()
            }
        );
        Ok(report)
    });
    match outcome {
        Ok(report) if report.faults.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}\n\n{}", plan::USAGE);
            ExitCode::from(2)
        }
    }
}

/// Goes through the phases; each adds its figures and its faults to the report.
async fn run(plan: &Plan) -> Result<Report, Failure> {
    let mut report = Report::new(plan);
    let server = ServerProcess::start(&mut plan.command())?;
    let address = server.address();
    probe::echo(address, 100).await?;
    let before = server.memory()?;

    eprintln!("opening {} sessions …", plan.sessions);
    let started = Instant::now();
    let sessions = sessions::open(address, plan.sessions).await?;
    report.figure(
        "sessions opened per second",
        plan.sessions as f64 / started.elapsed().as_secs_f64(),
    );
    let idle = server.memory()?;
    report.figure(
        "bytes per idle session",
        bytes_each(before, idle, plan.sessions),
    );

    eprintln!(
        "opening {} calls, {} of them over HTTP/2 …",
        plan.calls, plan.multiplexed
    );
    let started = Instant::now();
    let held = Held::open(address, plan, sessions.clone());
    held.all_sent().await?;
    report.figure("seconds to open the calls", started.elapsed().as_secs_f64());
    probe::wait_until_held(address, plan.calls, &held, &mut report).await?;
    let full = server.memory()?;
    report.figure("bytes per held call", bytes_each(idle, full, plan.calls));

    eprintln!("calling beside them …");
    probe::beside_held(address, &held, &mut report).await?;
    probe::beside_blocking(address, plan.blocking, &mut report).await?;
    if held.over() > 0 {
        report.fault("some calls were over before the probes beside them: raise --hold");
    }

    eprintln!("waiting for the calls to end …");
    held.finish(&mut report).await;
    report
        .faults
        .extend(sessions::check(address, sessions).await);
    report.memory(before, server.memory()?);
    Ok(report)
}
