//! Compares Turnbuckle with the limit and with every peer, in one run.

mod checked;
mod drive;
mod figure;
mod figures;
mod hello;
mod machine;
mod measure;
mod page;
mod peer;
mod pipe;
mod report;
mod results;

use std::path::{Path, PathBuf};

use turnbuckle_bench::{Failure, cores::Cores, options::Options};

use self::{figure::Figure, peer::Peer, results::Results};

const USAGE: &str = "\
usage: turnbuckle-bench compare [--only TEXT] [--skip TEXT] [--peers NAME,…] [--rounds N] [--json FILE] [--weight] [--list]
       turnbuckle-bench compare page [--from FILE] [--into PAGE]

Measures every figure on the limit, on ours and on the peers that bench/peers/prepare.py has built, and prints tables.
  --only TEXT     only figures with it in their group or case
  --skip TEXT     not those with it in their group or case
  --peers A,B     only these, the limit and ours
  --rounds N      how often each is measured, for a preview; stored values take the rounds that their figure declares
  --json FILE     keep all values; figures of FILE that are not measured again stay
  --weight        also clean release builds, which take minutes for each
  --list          print what would be measured
`page` writes the tables of FILE (bench/results.json) into PAGE (docs/speed.md).
Exit: 0 all was measured, 1 a goal was not reached, 2 something could not be measured.";

/// Returns whether every target was reached.
pub(super) fn run(mut options: Options) -> Result<bool, Failure> {
    if options.switch("--help") {
        println!("{USAGE}");
        return Ok(true);
    }
    match options.verb().as_deref() {
        None => compare(options),
        Some("page") => write_page(options),
        Some(verb) => Err(format!("unknown verb `{verb}`, see --help").into()),
    }
}

fn write_page(mut options: Options) -> Result<bool, Failure> {
    let from = options.value::<PathBuf>("--from")?;
    let into = options.value::<PathBuf>("--into")?;
    options.finish()?;
    let results = Results::read(&from.unwrap_or("bench/results.json".into()))?;
    page::rewrite(&into.unwrap_or("docs/speed.md".into()), &results)?;
    Ok(true)
}

fn compare(mut options: Options) -> Result<bool, Failure> {
    let only = options.value::<String>("--only")?.unwrap_or_default();
    let skip = options.value::<String>("--skip")?;
    let names = options.value::<String>("--peers")?;
    let rounds = options.value("--rounds")?;
    let json = options.value::<PathBuf>("--json")?;
    let list = options.switch("--list");
    let weight = options.switch("--weight");
    options.finish()?;
    ensure_declared_turns(rounds, json.as_deref())?;

    let mut figures = figures::all();
    if weight {
        figures.extend(figures::builds());
    }
    let figures = chosen(figures, &only, skip.as_deref());
    if list {
        for figure in &figures {
            println!("{} · {}", figure.group(), figure.case());
        }
        return Ok(true);
    }
    if figures.is_empty() {
        return Err(format!("no figure is called `{only}`").into());
    }
    let peers = selected_peers(names.as_deref())?;
    let places = Cores::take()?;
    let mut results = match &json {
        Some(path) if path.exists() => Results::read(path)?,
        _ => Results::default(),
    };
    let mut reached = true;
    for figure in figures {
        eprintln!("{} · {} …", figure.group(), figure.case());
        let case = measure::measure(&*figure, &peers, places, rounds)?;
        println!("{}", report::terminal(&case));
        reached &= case.is_reached() != Some(false);
        results.put(case);
        // Stored after each figure: a run takes an hour, and its results are not lost when it is stopped.
        if let Some(path) = &json {
            results.write(path)?;
        }
    }
    Ok(reached)
}

/// Rejects more rounds for a stored figure, so that none is added after a result was seen.
fn ensure_declared_turns(rounds: Option<usize>, json: Option<&Path>) -> Result<(), Failure> {
    match (rounds, json) {
        (Some(_), Some(_)) => {
            Err("--json keeps figures with the turns that they declare: leave out --rounds".into())
        }
        _ => Ok(()),
    }
}

fn chosen(
    mut figures: Vec<Box<dyn Figure>>,
    only: &str,
    skip: Option<&str>,
) -> Vec<Box<dyn Figure>> {
    figures.retain(|figure| {
        let name = format!("{} · {}", figure.group(), figure.case());
        name.contains(only) && skip.is_none_or(|skip| !name.contains(skip))
    });
    figures
}

fn selected_peers(names: Option<&str>) -> Result<Vec<Peer>, Failure> {
    let mut peers = peer::all()?;
    if peers.iter().all(|peer| peer.role != peer::Role::Peer) {
        eprintln!("no peers: bench/peers/prepare.py builds them");
    }
    if let Some(names) = names {
        let names: Vec<_> = names.split(',').collect();
        peers.retain(|peer| peer.role != peer::Role::Peer || names.contains(&&*peer.name));
    }
    Ok(peers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_figures_take_the_declared_rounds() {
        let file = Path::new("results.json");

        assert!(ensure_declared_turns(None, Some(file)).is_ok());
        assert!(ensure_declared_turns(Some(30), None).is_ok());
        assert!(ensure_declared_turns(Some(30), Some(file)).is_err());
    }

    #[test]
    fn requests_at_32_and_at_256_connections_have_a_goal_and_turns_enough() {
        for case in ["modern echo 50 B", "session echo 50 B"] {
            for connections in [32, 256] {
                let name = format!("HTTP · {case}, {connections} connections");
                let figure = chosen(figures::all(), &name, None).remove(0);
                assert!(figure.goal().is_some(), "{name}");
                assert_eq!((figure.rounds(), figure.rounds_of_peers()), (15, 3));
            }
        }
    }
}
