//! The programs of this binary: the benchmarks, and the servers and clients that they start.

mod bridge_server;
#[cfg(feature = "validation")]
mod checked_server;
mod compare;
mod echo_client;
mod echo_server;
mod instructions;
mod load;
#[cfg(feature = "http2")]
mod slow_server;

use std::{fmt::Write as _, process::Command};

use turnbuckle_bench::{
    Failure,
    limit::{bare, bare_bridge, bare_client},
    options::Options,
};

/// Runs a program with the arguments after its name. Returns whether it passed; only a benchmark can fail.
type Run = fn(Options) -> Result<bool, Failure>;

/// A program that the first argument can name.
struct Program {
    name: &'static str,
    /// What it does, for the list.
    summary: &'static str,
    /// The feature that it needs, if this build lacks it.
    run: Result<Run, &'static str>,
}

const PROGRAMS: [Program; 11] = [
    Program {
        name: "instructions",
        summary: "count the instructions of one request",
        run: Ok(instructions::run),
    },
    Program {
        name: "load",
        summary: "hold many calls open on one server process",
        run: Ok(load::run),
    },
    Program {
        name: "compare",
        summary: "compare with the limit and with other libraries",
        run: Ok(compare::run),
    },
    Program {
        name: "echo-server",
        summary: "the measured server",
        run: Ok(echo_server::run),
    },
    Program {
        name: "checked-server",
        summary: "the measured server, with validation",
        run: checked_server::RUN,
    },
    Program {
        name: "slow-server",
        summary: "the server of `load`",
        run: slow_server::RUN,
    },
    Program {
        name: "bridge-server",
        summary: "the measured gateway",
        run: Ok(bridge_server::run),
    },
    Program {
        name: "echo-client",
        summary: "the measured client",
        run: Ok(echo_client::run),
    },
    Program {
        name: "bare",
        summary: "the limit of a server",
        run: Ok(bare::run),
    },
    Program {
        name: "bare-client",
        summary: "the limit of a client",
        run: Ok(bare_client::run),
    },
    Program {
        name: "bare-bridge",
        summary: "the limit of a gateway",
        run: Ok(bare_bridge::run),
    },
];

#[cfg(not(feature = "validation"))]
mod checked_server {
    pub(super) const RUN: Result<super::Run, &str> = Err("validation");
}

#[cfg(not(feature = "http2"))]
mod slow_server {
    pub(super) const RUN: Result<super::Run, &str> = Err("http2");
}

/// Runs the program with this name.
pub(crate) fn run(name: &str, options: Options) -> Result<bool, Failure> {
    find(&PROGRAMS, name)?(options)
}

/// Returns the command that starts another program of this binary.
pub(crate) fn command(name: &str) -> Result<Command, Failure> {
    find(&PROGRAMS, name)?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(name);
    Ok(command)
}

/// Returns the usage, with the name of every program.
pub(crate) fn list() -> String {
    usage(&PROGRAMS)
}

fn usage(programs: &[Program]) -> String {
    let mut text = "usage: turnbuckle-bench PROGRAM [ARGUMENT…]\n".to_owned();
    for Program { name, summary, run } in programs {
        let _ = write!(text, "\n  {name:<15} {summary}");
        if let Err(feature) = run {
            let _ = write!(text, " (not in this build: needs the feature `{feature}`)");
        }
    }
    text
}

fn find(programs: &[Program], name: &str) -> Result<Run, Failure> {
    let program = programs.iter().find(|program| program.name == name);
    let program =
        program.ok_or_else(|| format!("unknown program `{name}`\n\n{}", usage(programs)))?;
    program.run.map_err(|feature| {
        format!("`{name}` is not in this build: build with `--features {feature}`").into()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_program_has_its_own_name_and_a_line_in_the_list() {
        let list = list();

        let names: BTreeSet<_> = PROGRAMS.iter().map(|program| program.name).collect();
        assert_eq!(names.len(), PROGRAMS.len());
        for Program { name, summary, .. } in PROGRAMS {
            assert!(
                list.contains(&format!("\n  {name:<15} {summary}")),
                "{name}"
            );
        }
    }

    #[test]
    fn a_command_names_the_program_for_this_binary() {
        let command = command("bare").unwrap();

        assert_eq!(command.get_program(), std::env::current_exe().unwrap());
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["bare"]);
    }

    #[test]
    fn an_unknown_name_is_an_error_that_lists_the_programs() {
        let error = command("bear").unwrap_err().to_string();

        assert!(error.starts_with("unknown program `bear`\n"), "{error}");
        assert!(error.ends_with(&list()), "{error}");
    }

    #[test]
    fn a_program_that_needs_a_missing_feature_names_it() {
        let programs = [Program {
            name: "slow-server",
            summary: "the server of `load`",
            run: Err("http2"),
        }];

        let error = find(&programs, "slow-server").unwrap_err().to_string();

        assert!(error.ends_with("`--features http2`"), "{error}");
        assert!(usage(&programs).contains("needs the feature `http2`"));
    }
}
