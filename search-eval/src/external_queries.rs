//! Queries of other projects, written without knowledge of this search: a folder with a query file and a folder per package.

use std::{collections::BTreeSet, path::Path};

use crate::{
    error::EvalError,
    query_set::QuerySet,
    report::EvalReport,
    repositories::{self, ScoredQuery, row},
    score::RESULT_LIMIT,
};

/// Name of the row for all queries.
const ALL: &str = "all";

/// Runs the queries of the folder for these packages, or for all of them.
///
/// Without a minimum: the figures are for comparison, and the folder is chosen by the user.
pub(crate) fn measure(folder: &Path, packages: &[String]) -> Result<EvalReport, EvalError> {
    let mut missed = Vec::new();
    let mut rows = Vec::new();
    let mut all: Vec<ScoredQuery> = Vec::new();
    for query_set in chosen(folder, packages)? {
        let package = folder.join(query_set.folder());
        let found = repositories::search_all(&query_set, &package, RESULT_LIMIT);
        let found = found.map_err(|failure| EvalError::at(&package, failure))?;
        let scored = repositories::score_results(&query_set, found, &mut missed);
        rows.push(row(query_set.package, scored.iter()));
        all.extend(scored);
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
    Ok(EvalReport {
        rows: summary,
        goals: Vec::new(),
        missed,
    })
}

fn chosen(folder: &Path, packages: &[String]) -> Result<Vec<QuerySet>, EvalError> {
    let mut query_set = QuerySet::all_in(folder)?;
    let is_known = |name: &&String| query_set.iter().any(|known| known.package == **name);
    if let Some(unknown) = packages.iter().find(|name| !is_known(name)) {
        return Err(EvalError::at(folder, format!("no queries about {unknown}")));
    }
    query_set.retain(|known| packages.is_empty() || packages.contains(&known.package));
    if query_set.is_empty() {
        return Err(EvalError::at(folder, "no queries"));
    }
    Ok(query_set)
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
        style = "plain"

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
    fn figures_are_reported_in_total_by_category_and_by_package() {
        let folder = kitchen();

        let report = measure(folder.path(), &[]).unwrap();

        let rows = report.rows.iter();
        let rows: Vec<_> = rows
            .map(|row| (row.name.as_str(), row.queries, row.ndcg_at_10))
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
    fn a_kind_without_queries_lacks_a_figure() {
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
    fn a_package_without_queries_is_an_error() {
        let folder = kitchen();

        let failure = measure(folder.path(), &["cellar".to_owned()])
            .err()
            .unwrap();

        assert!(failure.to_string().ends_with("no queries about cellar"));
    }
}
