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

mod held;
mod http2;
mod plan;
mod probe;
mod report;

use std::{process::ExitCode, time::Instant};

use turnbuckle_bench::{Failure, options::Options, process::ServerProcess, sessions};

use crate::{
    held::Held,
    plan::Plan,
    report::{Report, bytes_each},
};

fn main() -> ExitCode {
    let mut options = Options::from_process();
    if options.switch("--help") {
        println!("{}", plan::USAGE);
        return ExitCode::SUCCESS;
    }
    match Plan::from_options(options).and_then(|plan| measure(&plan)) {
        Ok(report) if report.faults.is_empty() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn measure(plan: &Plan) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let server = ServerProcess::start(&mut plan.command())?;
    let mut report = Report::new(plan);
    // From here on the server has been asked, and whatever fails is its answer.
    if let Err(error) = runtime.block_on(run(plan, &server, &mut report)) {
        report.fault(error.to_string());
    }
    println!(
        "{}",
        if plan.json {
            report.json()
        } else {
            report.table()
        }
    );
    Ok(report)
}

/// Goes through the phases; each adds its figures and its faults to the report.
async fn run(plan: &Plan, server: &ServerProcess, report: &mut Report) -> Result<(), Failure> {
    let address = server.address();
    probe::echo(address, 100).await?;
    let before = server.memory()?;

    eprintln!("opening {} sessions …", plan.sessions);
    let started = Instant::now();
    let sessions = sessions::open(address, "/mcp", plan.sessions).await?;
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
    probe::wait_until_held(address, plan.calls, &held, report).await?;
    let full = server.memory()?;
    report.figure("bytes per held call", bytes_each(idle, full, plan.calls));

    eprintln!("calling beside them …");
    probe::beside_held(address, &held, report).await?;
    probe::beside_blocking(address, plan.blocking, report).await?;
    if held.over() > 0 {
        report.fault("some calls were over before the probes beside them: raise --hold");
    }

    eprintln!("waiting for the calls to end …");
    held.finish(report).await;
    report
        .faults
        .extend(sessions::check(address, sessions).await);
    report.memory(before, server.memory()?);
    Ok(())
}
