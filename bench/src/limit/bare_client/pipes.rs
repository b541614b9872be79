//! The stdio limit: a blocking write, a blocking read.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use super::call;
use crate::{
    Failure,
    client::{Plan, Stopwatch},
    message::{self, Era},
};

/// Makes the planned calls, and returns their cost.
pub(crate) fn run(plan: &Plan, command: &[String]) -> Result<String, Failure> {
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = child.stdin.take().zip(child.stdout.take());
    let (mut input, output) = pipes.expect("both pipes were requested");
    let mut output = BufReader::with_capacity(64 * 1024, output);
    if plan.era == Era::Legacy {
        writeln!(input, "{}", message::INITIALIZE)?;
        output.read_line(&mut String::new())?;
        writeln!(input, "{}", message::INITIALIZED)?;
    }
    let time = Stopwatch::start()?;
    calls(plan, &mut input, &mut output)?;
    let report = time.report(plan.calls)?;
    drop(input);
    child.wait()?;
    Ok(report)
}

/// Keeps the planned number of calls in flight; each response makes room for the next call.
fn calls(plan: &Plan, input: &mut impl Write, output: &mut impl BufRead) -> Result<(), Failure> {
    let (mut sent, mut line) = (0, Vec::new());
    for answered in 0..plan.calls {
        while sent < plan.calls && sent < answered + plan.at_once {
            let mut call = call::write(plan.era, sent, &plan.message)?;
            // The newline is part of the buffer, so that there is one write.
            call.push(b'\n');
            input.write_all(&call)?;
            sent += 1;
        }
        line.clear();
        if output.read_until(b'\n', &mut line)? == 0 {
            return Err("the server closed its output".into());
        }
        let (_, text) = call::read(&line)?;
        if text != plan.message {
            return Err(format!("wrong response: {text:.300}").into());
        }
    }
    Ok(())
}
