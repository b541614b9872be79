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
    let days: BTreeSet<_> = results
        .cases
        .iter()
        .map(|case| &case.measured[..10])
        .collect();
    let days: Vec<_> = days.into_iter().collect();
    let mut text = format!("Measured on {}, {}.\n\n", days.join(", "), results.machine);
    for (group, cases) in by_group(results) {
        let _ = writeln!(text, "## {group}\n");
        match group {
            "growth" => text.push_str(&report::curves(&cases)),
            _ => cases
                .iter()
                .for_each(|case| text.push_str(&report::markdown(case))),
        }
    }
    text
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
    use super::*;

    #[test]
    fn only_the_part_between_the_marks_changes() {
        let results = Results {
            machine: "two cores".into(),
            cases: Vec::new(),
        };
        let page = format!("before\n{BEGIN}\nold\n{END}\nafter\n");

        let page = with_figures(&page, &results).unwrap();

        assert!(page.starts_with("before\n") && page.ends_with("\nafter\n"));
        assert!(page.contains("two cores") && !page.contains("old"));
        assert_eq!(with_figures("no marks", &results), None);
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
