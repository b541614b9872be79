//! Measures one figure on every peer in turn, repeatedly, so that a change of the machine affects all alike.

use std::{collections::BTreeMap, time::SystemTime};

use turnbuckle_bench::{Failure, cores::Cores};

use super::{
    figure::{Figure, Sample},
    machine,
    peer::{Peer, Role},
    results::{Case, Row},
};

/// Measures a figure; `rounds` overrides the number of rounds that the figure declares.
pub(crate) fn measure(
    figure: &dyn Figure,
    peers: &[Peer],
    places: Cores,
    rounds: Option<usize>,
) -> Result<Case, Failure> {
    let takes_part = |peer: &&Peer| peer.takes_part_in(figure.group());
    let peers: Vec<_> = peers.iter().filter(takes_part).collect();
    let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); peers.len()];
    let mut absent = BTreeMap::new();
    let rounds_of = |role| match role {
        Role::Peer => rounds.unwrap_or(figure.rounds_of_peers()),
        Role::Limit | Role::Ours => rounds.unwrap_or(figure.rounds()),
    };
    for turn in 0..rounds_of(Role::Ours) {
        for (peer, samples) in peers.iter().zip(&mut samples) {
            if absent.contains_key(&peer.name) || turn >= rounds_of(peer.role) {
                continue;
            }
            match round(figure, peer, places)? {
                Ok(sample) => samples.push(sample),
                Err(reason) => {
                    absent.insert(peer.name.clone(), reason);
                }
            }
        }
    }
    let measured = peers.iter().zip(samples);
    let measured = measured.filter(|(peer, _)| !absent.contains_key(&peer.name));
    Ok(Case {
        group: figure.group().to_owned(),
        case: figure.case(),
        measured: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
        machine: machine::describe(places),
        goal: figure.goal(),
        rows: measured
            .map(|(peer, samples)| row(peer, &samples))
            .collect(),
        absent,
    })
}

/// Measures once, or returns why this peer is left out. Only an error of ours or of the limit fails the benchmark.
fn round(
    figure: &dyn Figure,
    peer: &Peer,
    places: Cores,
) -> Result<Result<Sample, String>, Failure> {
    let lacks = peer.lacks(figure.group(), figure.needs());
    if let Some(reason) = lacks.or_else(|| figure.leaves_out(peer)) {
        return Ok(Err(reason.to_owned()));
    }
    match figure.round(peer, places) {
        Ok(Some(sample)) => Ok(Ok(sample)),
        // A missing program of ours was not built; only peers may have nothing to measure.
        Ok(None) if peer.role == Role::Ours => {
            Err(format!("{} was not measured", peer.name).into())
        }
        Ok(None) => Ok(Err("has no such form".to_owned())),
        Err(error) if peer.role == Role::Peer => Ok(Err(format!("failed: {error}"))),
        Err(error) => Err(format!("{}: {error}", peer.name).into()),
    }
}

fn row(peer: &Peer, samples: &[Sample]) -> Row {
    let metrics = samples.first().into_iter().flatten();
    let values_of = |metric| {
        let of = samples.iter().flatten();
        of.filter(move |(of, _)| *of == metric)
            .map(|(_, value)| *value)
    };
    Row {
        peer: peer.name.clone(),
        role: peer.role,
        values: metrics
            .map(|(metric, _)| (*metric, values_of(*metric).collect()))
            .collect(),
    }
}
