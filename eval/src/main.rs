//! Measures how well the context server finds things, and how it carries much. `README.md` says what the figures mean.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

mod cosqa;
mod failure;
mod indexed;
mod judged;
mod measure;
mod others;
mod pool;
mod report;
mod repositories;
mod scale;

use std::path::Path;
use std::process::ExitCode;

use crate::failure::Failure;
use crate::report::Report;

const USAGE: &str = "\
usage: turnbuckle-eval [--json] [--misses] cosqa
       turnbuckle-eval [--json] [--misses] repositories [FOLDER...]
       turnbuckle-eval [--json] others FOLDER [PACKAGE...]
       turnbuckle-eval pool [FOLDER...]
       turnbuckle-eval scale files|checkpoints [COUNT]

cosqa         500 questions to 6,267 functions; the data is below $TURNBUCKLE_DATA
others        queries that others wrote: FOLDER has them and the packages, as
              eval/semble.py leaves them; all packages, or those named
pool          prints what the search finds and nobody has judged yet
scale         files [COUNT]: indexes a repository of so many files (50,000);
              checkpoints [COUNT]: searches in a memory of so many (100,000)
repositories  the judged queries of eval/queries, on packages in these folders
              (by default where eval/fetch.py puts them)

--json        prints the figures as JSON
--misses      names the questions whose answer is not the first file

Exits with 1 if a figure is worse than before, with 2 if nothing could be measured.";

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut switch = |name: &str| {
        let before = words.len();
        words.retain(|word| word != name);
        words.len() < before
    };
    let (json, misses) = (switch("--json"), switch("--misses"));
    let print = |report: Report| {
        let text = if json {
            report.to_json()
        } else {
            report.to_table(misses)
        };
        println!("{text}");
        report.is_good_enough()
    };
    let is_good_enough = match words.split_first() {
        Some((command, rest)) if command == "scale" => scale::measure(rest),
        Some((command, rest)) if command == "pool" => pool::to_judge(rest).map(|lines| {
            print!("{lines}");
            true
        }),
        _ => measure(&words).map(print),
    };
    match is_good_enough {
        Ok(is_good_enough) => ExitCode::from(u8::from(!is_good_enough)),
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(2)
        }
    }
}

fn measure(words: &[String]) -> Result<Report, Failure> {
    match words {
        [command] if command == "cosqa" => cosqa::measure(),
        [command, folders @ ..] if command == "repositories" => repositories::measure(folders),
        [command, folder, packages @ ..] if command == "others" => {
            others::measure(Path::new(folder), packages)
        }
        _ => Err(Failure::new(USAGE)),
    }
}
