//! Relays between this process's standard streams and a program, byte by byte.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    process::{ChildStderr, ChildStdin},
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
/// The time to read stderr after the program has exited. A process that left its group may hold it open.
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
    let output = tokio::spawn(relay_output(output, from_server));
    let errors = error_output.map(|pipe| tokio::spawn(relay_stderr(pipe, stderr)));
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
    // Ends shortly after the process, even if a descendant holds the pipe.
    let _ = output.await;
    if let Some(errors) = errors {
        let _ = timeout(STDERR_DRAIN_TIMEOUT, errors).await;
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
    relay(tokio::io::stdin(), input, copy).await
}

/// Relays the output of the program. If the client does not read any more, the pipe of the program is closed too.
async fn relay_output(output: ServerStdout, copy: StreamSink) -> io::Result<()> {
    relay(output, tokio::io::stdout(), copy).await
}

async fn relay_stderr(errors: ChildStderr, copy: StreamSink) -> io::Result<()> {
    relay(errors, tokio::io::stderr(), copy).await
}

/// Passes bytes on as they arrive, and gives a copy to the recording first, so that a message is recorded before its
/// response.
async fn relay(
    mut reader: impl AsyncRead + Send + Unpin + 'static,
    mut writer: impl AsyncWrite + Send + Unpin + 'static,
    copy: StreamSink,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let length = reader.read(&mut buffer).await?;
        if length == 0 {
            return writer.shutdown().await;
        }
        copy.write(&buffer[..length]);
        writer.write_all(&buffer[..length]).await?;
        writer.flush().await?;
    }
}
