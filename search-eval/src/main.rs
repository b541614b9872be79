//! Measures the search quality and the scale limits of the context server. `README.md` explains the figures.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command prints"
)]

mod cosqa;
mod error;
mod external_queries;
mod indexed_folder;
mod query_set;
mod report;
mod repositories;
mod scale;
mod score;
mod ungraded;

use std::{path::Path, process::ExitCode};

use crate::{error::EvalError, report::EvalReport};

const USAGE: &str = "\
usage: turnbuckle-search-eval [--json] [--misses] cosqa
       turnbuckle-search-eval [--json] [--misses] repositories [FOLDER...]
       turnbuckle-search-eval [--json] others FOLDER [PACKAGE...]
       turnbuckle-search-eval pool [FOLDER...]
       turnbuckle-search-eval scale files|checkpoints [COUNT]

cosqa         500 queries on 6,267 functions; the data is in $TURNBUCKLE_DATA
others        queries of other projects: FOLDER has them and the packages, as
              written by search-eval/semble.py; all packages, or those named
pool          prints the search results without a grade
scale         files [COUNT]: indexes a repository of COUNT files (50,000);
              checkpoints [COUNT]: searches COUNT checkpoints (100,000)
repositories  the judged queries of search-eval/queries, on packages in these folders
              (by default where search-eval/fetch.py puts them)

--json        prints the figures as JSON
--misses      lists queries for which the best file is not ranked first

Exits with 1 if a figure is below its recorded minimum, with 2 on an error.";

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let mut switch = |name: &str| {
        let before = words.len();
        words.retain(|word| word != name);
        words.len() < before
    };
    let (json, missed) = (switch("--json"), switch("--misses"));
    let print = |report: EvalReport| {
        let text = if json {
            report.to_json()
        } else {
            report.to_table(missed)
        };
        println!("{text}");
        report.is_good_enough()
    };
    let is_good_enough = match words.split_first() {
        Some((command, rest)) if command == "scale" => scale::measure(rest),
        Some((command, rest)) if command == "pool" => ungraded::list_ungraded(rest).map(|lines| {
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

fn measure(words: &[String]) -> Result<EvalReport, EvalError> {
    match words {
        [command] if command == "cosqa" => cosqa::measure(),
        [command, folders @ ..] if command == "repositories" => repositories::measure(folders),
        [command, folder, packages @ ..] if command == "others" => {
            external_queries::measure(Path::new(folder), packages)
        }
        _ => Err(EvalError::new(USAGE)),
    }
}
