//! Holds very many slow calls and idle sessions open on one server process, and checks every response.
//!
//! Latencies and rates are printed and not checked: they depend on the machine. The checks are that every
//! response arrives and belongs to its call, that calls which wait or block delay no other, that all were
//! in flight at once, and that the server stays below its memory limit.

mod http2;
mod plan;
mod probe;
mod report;
mod slow_calls;

use std::time::Instant;

use turnbuckle_bench::{Failure, options::Options, process::ServerProcess, sessions};

use self::{
    plan::Plan,
    report::{Report, bytes_each},
    slow_calls::SlowCalls,
};

/// Returns whether the server passed every check.
pub(super) fn run(mut options: Options) -> Result<bool, Failure> {
    if options.switch("--help") {
        println!("{}", plan::USAGE);
        return Ok(true);
    }
    let report = measure(&Plan::from_options(options)?)?;
    Ok(report.faults.is_empty())
}

fn measure(plan: &Plan) -> Result<Report, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let server = ServerProcess::start(&mut plan.command()?)?;
    let mut report = Report::new(plan);
    // From here on a failure is a result of the server, not of the setup.
    if let Err(error) = runtime.block_on(run_phases(plan, &server, &mut report)) {
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

/// Runs the phases; each adds its figures and its failures to the report.
async fn run_phases(
    plan: &Plan,
    server: &ServerProcess,
    report: &mut Report,
) -> Result<(), Failure> {
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
    let held = SlowCalls::open(address, plan, sessions.clone());
    held.all_sent().await?;
    report.figure("seconds to open the calls", started.elapsed().as_secs_f64());
    probe::wait_until_held(address, plan.calls, &held, report).await?;
    let full = server.memory()?;
    report.figure("bytes per held call", bytes_each(idle, full, plan.calls));

    eprintln!("calling while they are in flight …");
    probe::during_slow_calls(address, &held, report).await?;
    probe::during_blocking_calls(address, plan.blocking, report).await?;
    if held.over() > 0 {
        report.fault("some calls ended before the concurrent probes: raise --hold");
    }

    eprintln!("waiting for the calls to end …");
    held.finish(report).await;
    report
        .faults
        .extend(sessions::check(address, sessions).await);
    report.memory(before, server.memory()?);
    Ok(())
}
