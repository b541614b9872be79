//! The figures as tables: aligned for a terminal, with bars for a page.

use std::fmt::Write as _;

use super::{
    figure::{Goal, GoalBound, Metric},
    peer::Role,
    results::{Case, Row},
};

/// Returns a case as a table for a terminal.
pub(crate) fn terminal(case: &Case) -> String {
    let mut text = format!("{} · {}\n", case.group, case.case);
    let cells = cells(case);
    let widths: Vec<_> = (0..cells[0].len())
        .map(|column| cells.iter().map(|row| row[column].chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    for row in &cells {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column {
                0 => write!(text, "  {cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.push('\n');
    }
    for (peer, reason) in &case.absent {
        let _ = writeln!(text, "  {peer}: {reason}");
    }
    if let Some(verdict) = verdict(case) {
        let _ = writeln!(text, "  {verdict}");
    }
    text
}

/// Returns a case as a table for a page.
pub(crate) fn markdown(case: &Case) -> String {
    let mut text = format!("### {}\n\n", case.case);
    let cells = cells(case);
    for (at, row) in cells.iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if at == 0 {
            let _ = writeln!(text, "|---{}|", "|---:".repeat(row.len() - 1));
        }
    }
    text.push('\n');
    let absent: Vec<_> = case
        .absent
        .iter()
        // A reason can be a whole response.
        .map(|(peer, reason)| format!("{peer}: {}", reason.lines().next().unwrap_or_default()))
        .collect();
    if !absent.is_empty() {
        let _ = writeln!(text, "Not measured: {}.\n", absent.join("; "));
    }
    let turns = turns(case);
    let _ = match verdict(case) {
        Some(verdict) => writeln!(text, "{verdict} {turns}\n"),
        None => writeln!(text, "{turns}\n"),
    };
    text
}

/// Returns a text about the number of rounds.
fn turns(case: &Case) -> String {
    let turns = |wanted: fn(Role) -> bool| {
        let rows = case.rows.iter().filter(|row| wanted(row.role));
        rows.filter_map(|row| row.values.first())
            .map(|(_, values)| values.len())
            .max()
    };
    let ours = turns(|role| role != Role::Peer);
    let peers = turns(|role| role == Role::Peer).filter(|peers| Some(*peers) != ours);
    let ours = ours.unwrap_or_default();
    match peers {
        Some(peers) => format!("Turns: {ours}, of peers {peers}."),
        None => format!("Turns: {ours}."),
    }
}

/// Returns cases that differ in one number as a single table: a line for each case, a column for each peer.
pub(crate) fn curves(cases: &[&Case]) -> String {
    let mut peers: Vec<&str> = Vec::new();
    for row in cases.iter().flat_map(|case| &case.rows) {
        if !peers.contains(&&*row.peer) {
            peers.push(&row.peer);
        }
    }
    let mut text = format!("| | | {} |\n", peers.join(" | "));
    let _ = writeln!(text, "|---|---{}|", "|---:".repeat(peers.len()));
    for case in cases {
        let Some(metric) = compared(case) else {
            continue;
        };
        let of = |peer: &&str| case.rows.iter().find(|row| row.peer == **peer);
        let values = peers
            .iter()
            .map(|peer| number(of(peer).and_then(|row| row.median(metric))));
        let values: Vec<_> = values.collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            case.case,
            metric.head(),
            values.join(" | ")
        );
    }
    text.push('\n');
    text
}

/// Returns the head, then a line for each peer.
fn cells(case: &Case) -> Vec<Vec<String>> {
    let first = case.rows.first();
    let metrics: Vec<_> = first.iter().flat_map(|row| &row.values).collect();
    let metrics: Vec<_> = metrics.iter().map(|(metric, _)| *metric).collect();
    let ratio = compared(case).filter(|_| case.row_of(Role::Limit).is_some());
    let head = std::iter::once(String::new())
        .chain(metrics.iter().map(|metric| metric.head().to_owned()))
        .chain(ratio.map(|metric| format!("{} × limit", metric.head())));
    let line = |row: &Row| {
        std::iter::once(row.peer.clone())
            .chain(metrics.iter().map(|metric| number(row.median(*metric))))
            .chain(ratio.map(|metric| times(case, row, metric)))
            .collect()
    };
    std::iter::once(head.collect())
        .chain(case.rows.iter().map(line))
        .collect()
}

/// Returns the metric that is compared with the limit: that of the target, or else the first that is a cost.
fn compared(case: &Case) -> Option<Metric> {
    let goal = case.goal.map(|goal| goal.metric);
    let values = &case.rows.first()?.values;
    let mut metrics = values.iter().map(|(metric, _)| *metric);
    goal.or_else(|| metrics.find(|metric| *metric != Metric::PerSecond))
}

fn times(case: &Case, row: &Row, metric: Metric) -> String {
    let limit = case.row_of(Role::Limit).and_then(|row| row.median(metric));
    match (row.median(metric), limit) {
        (Some(value), Some(limit)) if limit > 0.0 => format!("{:.2}", value / limit),
        _ => "–".to_owned(),
    }
}

fn verdict(case: &Case) -> Option<String> {
    let Goal { metric, reach } = case.goal?;
    let goal = match reach {
        GoalBound::Times(times) => format!("at most {times} × the limit"),
        GoalBound::Share(share) => format!("at least {:.0} % of the limit", share * 100.0),
        GoalBound::AtMost(most) => format!("at most {}", number(Some(most))),
    };
    let reached = match case.is_reached() {
        Some(true) => "reached",
        Some(false) => "NOT REACHED",
        None => "not compared",
    };
    Some(format!("Goal: {}, {goal}: {reached}.", metric.head()))
}

/// Formats three significant digits, or a whole number with thousands separators.
fn number(value: Option<f64>) -> String {
    let Some(value) = value else {
        return "–".to_owned();
    };
    match value.abs() {
        small if small < 10.0 => format!("{value:.2}"),
        small if small < 100.0 => format!("{value:.1}"),
        _ => grouped(&format!("{value:.0}")),
    }
}

fn grouped(digits: &str) -> String {
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn case() -> Case {
        let row = |peer: &str, role, cpu: f64, rate: f64| Row {
            peer: peer.into(),
            role,
            values: vec![(Metric::PerSecond, vec![rate]), (Metric::Cpu, vec![cpu])],
        };
        Case {
            group: "http".into(),
            case: "modern 50 B".into(),
            measured: "2026-11-16T12:00:00Z".into(),
            machine: "two cores".into(),
            goal: Some(Goal::share(Metric::PerSecond, 0.8)),
            rows: vec![
                row("bare", Role::Limit, 10.0, 50_000.0),
                row("turnbuckle", Role::Ours, 11.0, 39_000.0),
            ],
            absent: BTreeMap::from([("other".into(), "no node\r\ndate: today".into())]),
        }
    }

    #[test]
    fn a_table_has_ratios_reasons_and_a_result() {
        let text = markdown(&case());

        assert!(
            text.contains("| turnbuckle | 39\u{202f}000 | 11.0 | 0.78 |"),
            "{text}"
        );
        assert!(text.contains("Not measured: other: no node."), "{text}");
        assert!(
            text.contains("at least 80 % of the limit: NOT REACHED. Turns: 1."),
            "{text}"
        );
        assert!(terminal(&case()).contains("NOT REACHED"));
    }

    #[test]
    fn a_table_shows_the_number_of_rounds() {
        let mut case = case();
        case.rows[1].values[0].1 = vec![1.0; 15];
        assert_eq!(turns(&case), "Turns: 15.");

        case.rows.push(Row {
            peer: "other".into(),
            role: Role::Peer,
            values: vec![(Metric::PerSecond, vec![1.0; 3])],
        });
        assert_eq!(turns(&case), "Turns: 15, of peers 3.");
    }

    #[test]
    fn curves_have_a_line_for_each_case_and_a_column_for_each_peer() {
        let (small, mut large) = (case(), case());
        large.case = "modern 1 KiB".into();
        large.rows.truncate(1);

        let text = curves(&[&small, &large]);

        assert!(
            text.starts_with("| | | bare | turnbuckle |\n|---|---|---:|---:|\n"),
            "{text}"
        );
        assert!(
            text.contains("| modern 1 KiB | per second | 50\u{202f}000 | – |"),
            "{text}"
        );
    }

    #[test]
    fn numbers_keep_three_significant_digits() {
        assert_eq!(number(Some(1.286)), "1.29");
        assert_eq!(number(Some(12.34)), "12.3");
        assert_eq!(number(Some(1234.5)), "1\u{202f}234");
        assert_eq!(number(None), "–");
    }
}
