//! Relays between this process's standard streams and a program, byte by byte.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    process::{ChildStderr, ChildStdin},
    task::JoinHandle,
    time::timeout,
};
use turnbuckle_client::stdio::{
    ExitReason, ServerCommand, ServerStdout, SpawnedProcess, StderrMode,
};
use turnbuckle_protocol::recording::{CloseEntry, EntryKind, MessageSide, OpenEntry};

use super::{RecordingSink, sink::StreamSink, streams::RecordedStream};
use crate::{
    context::CommandContext,
    error::{CliError, Result},
    signals::ForwardedSignals,
};

/// Size of the read buffers: that of a pipe on Linux.
const CHUNK_BYTES: usize = 64 * 1024;
/// The time without progress after which the output of a program that has exited is abandoned, because the client does not
/// read it.
const OUTPUT_DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// The same for stderr. A process that left its group may hold it open.
const STDERR_DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// The number of the only connection.
const CONNECTION: u64 = 1;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramExit {
    /// It exited with a code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

/// Starts a program, and relays until it has exited. Signals of this process are passed on to its process group.
pub(crate) async fn relay_program(
    command: &[String],
    sink: &RecordingSink,
    context: &CommandContext,
) -> Result<ProgramExit> {
    let [program, arguments @ ..] = command else {
        return Err(CliError::could_not_run("the program is missing"));
    };
    let mut signals = ForwardedSignals::new()?;
    let child = ServerCommand::new(program)
        .args(arguments)
        .inherit_all_env()
        .stderr(StderrMode::Piped)
        .observer(context.supervisor.clone());
    let started = child.start();
    let started = started.map_err(|error| CliError::could_not_run(error.to_string()))?;
    let names = context.environment.vars.keys().map(String::as_str);
    let open = OpenEntry::program(command.iter().map(String::as_str)).env(names);
    sink.entry(CONNECTION, EntryKind::Open(open));

    let SpawnedProcess {
        process,
        input,
        output,
        error_output,
        ..
    } = started;
    let stream = |stream| sink.stream(CONNECTION, stream);
    let from_client = stream(RecordedStream::Messages(MessageSide::Client));
    let from_server = stream(RecordedStream::Messages(MessageSide::Server));
    let stderr = stream(RecordedStream::Stderr);
    let input = tokio::spawn(relay_input(input, from_client));
    let (output_steps, error_steps) = (RelaySteps::default(), RelaySteps::default());
    let steps = output_steps.clone();
    let output = tokio::spawn(relay_output(output, from_server, steps));
    let steps = error_steps.clone();
    let errors = error_output.map(|pipe| tokio::spawn(relay_stderr(pipe, stderr, steps)));
    let exited = process.wait();
    tokio::pin!(exited);
    let exit = loop {
        tokio::select! {
            exited = &mut exited => break exited.exit,
            signal = signals.recv() => signal.send_to_group(process.id()),
        }
    };
    // Reading from the terminal or a pipe cannot be cancelled; the task ends with the process.
    input.abort();
    let drained = async {
        // Ends shortly after the process, even if a descendant holds the pipe.
        drain(output, &output_steps, OUTPUT_DRAIN_TIMEOUT).await;
        if let Some(errors) = errors {
            drain(errors, &error_steps, STDERR_DRAIN_TIMEOUT).await;
        }
    };
    tokio::select! {
        () = drained => {}
        _ = signals.recv() => {}
    }
    process.end().await;
    let (entry, exit) = match exit {
        ExitReason::Signal(signal) => (CloseEntry::signal(signal), ProgramExit::Signal(signal)),
        ExitReason::Code(code) => (CloseEntry::code(code), ProgramExit::Code(code)),
        _ => (CloseEntry::default(), ProgramExit::Code(1)),
    };
    sink.entry(CONNECTION, EntryKind::Close(entry));
    Ok(exit)
}

/// Relays the input of the client; its end ends the input of the program.
async fn relay_input(input: ChildStdin, copy: StreamSink) -> io::Result<()> {
    relay(tokio::io::stdin(), input, copy, RelaySteps::default()).await
}

/// Relays the output of the program. If the client does not read any more, the pipe of the program is closed too.
async fn relay_output(output: ServerStdout, copy: StreamSink, steps: RelaySteps) -> io::Result<()> {
    relay(output, tokio::io::stdout(), copy, steps).await
}

async fn relay_stderr(errors: ChildStderr, copy: StreamSink, steps: RelaySteps) -> io::Result<()> {
    relay(errors, tokio::io::stderr(), copy, steps).await
}

/// Passes bytes on as they arrive, and gives a copy to the recording first, so that a message is recorded before its
/// response.
async fn relay(
    mut reader: impl AsyncRead + Send + Unpin + 'static,
    mut writer: impl AsyncWrite + Send + Unpin + 'static,
    copy: StreamSink,
    steps: RelaySteps,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            return writer.shutdown().await;
        }
        steps.0.fetch_add(1, Ordering::Relaxed);
        copy.write(&buffer[..length]);
        writer.write_all(&buffer[..length]).await?;
        writer.flush().await?;
        steps.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts the reads and writes of a relay.
#[derive(Clone, Debug, Default)]
struct RelaySteps(Arc<AtomicU64>);

/// Waits for the end of a relay, as long as it makes progress within each period.
async fn drain(mut relay: JoinHandle<io::Result<()>>, steps: &RelaySteps, period: Duration) {
    loop {
        let before = steps.0.load(Ordering::Relaxed);
        let ended = timeout(period, &mut relay).await;
        if ended.is_ok() || steps.0.load(Ordering::Relaxed) == before {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test]
    async fn the_rest_of_recorded_output_is_read_while_there_is_progress() {
        let period = Duration::from_secs(1);
        let steps = RelaySteps::default();
        let relay = tokio::spawn({
            let steps = steps.clone();
            async move {
                for _ in 0..6 {
                    sleep(period / 4).await;
                    steps.0.fetch_add(1, Ordering::Relaxed);
                }
                std::future::pending().await
            }
        });
        let started_at = Instant::now();

        drain(relay, &steps, period).await;

        let waited = started_at.elapsed();
        assert!(waited > period * 3 / 2, "{waited:?}");
    }
}
