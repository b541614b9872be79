//! Writes the tables into a page, between two marks, so that no figure is typed by hand.

use std::{collections::BTreeSet, fmt::Write as _, path::Path};

use turnbuckle_bench::Failure;

use super::{
    report,
    results::{Case, Results},
};

const BEGIN: &str = "<!-- figures: begin -->";
const END: &str = "<!-- figures: end -->";

/// Rewrites the part of the page between the marks.
pub(crate) fn rewrite(page: &Path, results: &Results) -> Result<(), Failure> {
    let text =
        std::fs::read_to_string(page).map_err(|error| format!("{}: {error}", page.display()))?;
    let text = with_figures(&text, results)
        .ok_or_else(|| format!("{} has no `{BEGIN}` … `{END}`", page.display()))?;
    Ok(std::fs::write(page, text)?)
}

fn with_figures(page: &str, results: &Results) -> Option<String> {
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}{END}{after}", figures(results)))
}

fn figures(results: &Results) -> String {
    let usual = results.cases.first().map_or("", |case| &*case.machine);
    let is_usual = |case: &&Case| case.machine == usual;
    let mut text = measured(results.cases.iter().filter(is_usual), usual);
    for (group, cases) in by_group(results) {
        let _ = writeln!(text, "## {group}\n");
        if group == "growth" {
            text.push_str(&report::curves(&cases));
            for case in cases.iter().filter(|case| !is_usual(case)) {
                let _ = write!(text, "{}: ", case.case);
                text.push_str(&measured([*case], &case.machine));
            }
            continue;
        }
        for case in cases {
            text.push_str(&report::markdown(case));
            if !is_usual(&case) {
                text.push_str(&measured([case], &case.machine));
            }
        }
    }
    text
}

/// Returns a text about when these cases were measured on this machine.
fn measured<'a>(cases: impl IntoIterator<Item = &'a Case>, machine: &str) -> String {
    let days: BTreeSet<_> = cases.into_iter().map(|case| &case.measured[..10]).collect();
    let days: Vec<_> = days.into_iter().collect();
    format!("Measured on {}, {machine}.\n\n", days.join(", "))
}

/// Returns the groups in the order of their first case, each with its cases.
fn by_group(results: &Results) -> Vec<(&str, Vec<&Case>)> {
    let mut groups: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in &results.cases {
        match groups.iter_mut().find(|(group, _)| *group == case.group) {
            Some((_, cases)) => cases.push(case),
            None => groups.push((&case.group, vec![case])),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn case(name: &str, measured: &str, machine: &str) -> Case {
        Case {
            group: "http".into(),
            case: name.into(),
            measured: measured.into(),
            machine: machine.into(),
            goal: None,
            rows: Vec::new(),
            absent: BTreeMap::new(),
        }
    }

    #[test]
    fn only_the_part_between_the_marks_changes() {
        let results = Results {
            cases: vec![case("echo", "2026-11-17T12:00:00Z", "two cores")],
        };
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");

        let page = with_figures(&page, &results).unwrap();

        assert!(page.starts_with("before\n") && page.ends_with("\nafter\n"));
        assert!(page.contains("two cores") && !page.contains("old"));
        assert_eq!(with_figures("no marks", &results), None);
    }

    #[test]
    fn figure_of_another_machine_says_so() {
        let results = Results {
            cases: vec![
                case("echo", "2026-11-17T12:00:00Z", "two cores"),
                case("list", "2026-11-18T12:00:00Z", "two cores"),
                case("add", "2026-11-19T12:00:00Z", "four cores"),
            ],
        };

        let text = figures(&results);

        assert!(text.starts_with("Measured on 2026-11-17, 2026-11-18, two cores.\n"));
        let (before, after) = text.split_once("### add").unwrap();
        assert!(!before.contains("four cores"), "{text}");
        assert!(
            after.contains("Measured on 2026-11-19, four cores.\n"),
            "{text}"
        );
    }

    #[test]
    fn the_page_shows_the_stored_results() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let results = Results::read(&root.join("results.json")).unwrap();
        let page = std::fs::read_to_string(root.join("../docs/speed.md")).unwrap();

        let again = with_figures(&page, &results);

        assert!(
            again.as_deref() == Some(&page),
            "run `turnbuckle-bench compare page`"
        );
    }
}
