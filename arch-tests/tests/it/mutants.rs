//! Checks that the edits of `spec/mutants.toml` can be applied, without building them.

use std::fs;

use toml::Table;
use turnbuckle_arch_tests::root;

#[test]
fn every_mutant_changes_one_place() {
    let text = fs::read_to_string(root().join("spec/mutants.toml")).unwrap();
    let table: Table = text.parse().unwrap();
    let mutants = table["mutant"].as_array().unwrap();
    assert!(mutants.len() > 50, "{}", mutants.len());

    let mut wrong = Vec::new();
    for mutant in mutants {
        let member = |name: &str| mutant[name].as_str().unwrap();
        let source = fs::read_to_string(root().join(member("file"))).unwrap();
        let (find, replace) = (member("find"), member("replace"));
        let places = source.matches(find).count();
        if places != 1 || find == replace {
            let (row, file) = (member("row"), member("file"));
            wrong.push(format!("{row}: {places} places in {file}: {find:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
