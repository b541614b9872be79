//! Queries that others wrote, who know nothing of this search: a folder with a file of queries and a folder per package.

use std::{collections::BTreeSet, path::Path};

use crate::{
    failure::Failure,
    judged::Judged,
    measure::LOOKED_AT,
    report::Report,
    repositories::{self, Answered, row},
};

/// All queries there are.
const ALL: &str = "all";

/// Asks what the folder has about these packages, or about all of them.
///
/// Without a minimum: the figures are for comparison, and the folder is chosen by the user.
pub(crate) fn measure(folder: &Path, packages: &[String]) -> Result<Report, Failure> {
    let mut misses = Vec::new();
    let mut rows = Vec::new();
    let mut all: Vec<Answered> = Vec::new();
    for judged in chosen(folder, packages)? {
        let place = folder.join(judged.folder());
        let found = repositories::ask(&judged, &place, LOOKED_AT);
        let found = found.map_err(|failure| Failure::at(&place, failure))?;
        let answered = repositories::weigh(&judged, found, &mut misses);
        rows.push(row(judged.package, answered.iter()));
        all.extend(answered);
    }
    let categories: BTreeSet<&String> =
        all.iter().filter_map(|one| one.category.as_ref()).collect();
    let mut summary = vec![row(ALL.to_owned(), all.iter())];
    summary.extend(categories.into_iter().map(|category| {
        let some = all.iter();
        let some = some.filter(|one| one.category.as_ref() == Some(category));
        row(format!("{ALL}, {category}"), some)
    }));
    summary.extend(rows);
    Ok(Report {
        rows: summary,
        goals: Vec::new(),
        misses,
    })
}

fn chosen(folder: &Path, packages: &[String]) -> Result<Vec<Judged>, Failure> {
    let mut judged = Judged::all_in(folder)?;
    let is_known = |name: &&String| judged.iter().any(|known| known.package == **name);
    if let Some(unknown) = packages.iter().find(|name| !is_known(name)) {
        return Err(Failure::at(folder, format!("no queries about {unknown}")));
    }
    judged.retain(|known| packages.is_empty() || packages.contains(&known.package));
    if judged.is_empty() {
        return Err(Failure::at(folder, "no queries"));
    }
    Ok(judged)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const QUERIES: &str = r#"
        package = "kitchen"
        registry = "git"
        version = "1f2e"
        tuned = false
        asked = "plainly"

        [[query]]
        text = "how the oven is heated"
        kind = "natural"
        category = "architecture"
        relevant = [{ path = "oven.py", grade = 3 }]

        [[query]]
        text = "Kettle"
        kind = "symbol"
        category = "symbol"
        relevant = [{ path = "oven.py", grade = 3 }]
    "#;

    fn kitchen() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kitchen.toml"), QUERIES).unwrap();
        let package = folder.path().join("kitchen-1f2e");
        fs::create_dir(&package).unwrap();
        fs::write(package.join("oven.py"), "def heat(oven):\n    oven.on()\n").unwrap();
        fs::write(package.join("tea.py"), "class Kettle:\n    pass\n").unwrap();
        folder
    }

    #[test]
    fn figures_are_given_for_all_for_each_category_and_for_each_package() {
        let folder = kitchen();

        let report = measure(folder.path(), &[]).unwrap();

        let rows = report.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (row.name.as_str(), row.questions, row.ndcg_at_10))
            .collect();
        let expected = [
            ("all", 2, 0.5),
            ("all, architecture", 1, 1.0),
            ("all, symbol", 1, 0.0),
            ("kitchen", 2, 0.5),
        ];
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_kind_that_is_not_asked_has_no_figure() {
        let folder = kitchen();

        let report = measure(folder.path(), &[]).unwrap();

        let row = report
            .rows
            .iter()
            .find(|row| row.name == "all, symbol")
            .unwrap();
        assert_eq!((row.natural, row.symbol), (None, Some(0.0)));
    }

    #[test]
    fn a_package_nobody_asks_about_is_no_figure() {
        let folder = kitchen();

        let failure = measure(folder.path(), &["cellar".to_owned()])
            .err()
            .unwrap();

        assert!(failure.to_string().ends_with("no queries about cellar"));
    }
}
