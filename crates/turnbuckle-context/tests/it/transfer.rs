//! Tests of export, import and deletion.

use std::path::Path;

use serde_json::Value;
use turnbuckle_context::{
    ContextError, DataDir, Owner, Redactor,
    evaluation::{
        collections,
        memory::{self, ItemKind, MemoryQuery, NewItem},
    },
    transfer::{
        DataSelection, DeleteRequest, ImportOptions, ImportReport, delete, export, import, stats,
    },
};

/// A data directory with two projects and a shared skill.
struct TestData {
    data: tempfile::TempDir,
    folders: [tempfile::TempDir; 2],
    data_dir: DataDir,
    ada: Owner,
}

impl TestData {
    fn empty() -> Self {
        let data = tempfile::tempdir().unwrap();
        let data_dir = DataDir::new(data.path());
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        Self {
            data,
            folders,
            data_dir,
            ada: Owner::for_user("ada"),
        }
    }

    fn with_items() -> Self {
        let data = Self::empty();
        data.save(
            0,
            NewItem::checkpoint("zanzibar is half done")
                .title("Zanzibar")
                .branch("a/b")
                .tags(["t"]),
        );
        data.save(
            0,
            NewItem::remediation("error E0308 in quokka", "cast it").detail("rust 1.88"),
        );
        data.save(
            1,
            NewItem::checkpoint("line one\nline \"two\" \u{2028} \0 end"),
        );
        let shared = data.data_dir.open_shared(&data.ada).unwrap();
        memory::save(
            &shared,
            Redactor::standard(),
            NewItem::skill("Fly", "How to fly", "Flap."),
        )
        .unwrap();
        data
    }

    /// Returns the folder of the owner.
    fn folder(&self) -> std::path::PathBuf {
        self.data.path().join(self.ada.id())
    }

    fn project(&self, at: usize) -> turnbuckle_context::Project {
        self.data_dir
            .project(&self.ada, self.folders[at].path().to_str().unwrap())
            .unwrap()
    }

    fn open(&self, at: usize) -> std::sync::Arc<turnbuckle_context::Database> {
        self.data_dir
            .open_project(&self.ada, &self.project(at))
            .unwrap()
    }

    fn save(&self, at: usize, new_item: NewItem) -> String {
        memory::save(&self.open(at), Redactor::standard(), new_item)
            .unwrap()
            .item
            .id
    }

    fn export(&self, selection: &DataSelection) -> String {
        let mut text = Vec::new();
        export(&self.data_dir, &self.ada, selection, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn import(&self, text: &str, options: &ImportOptions) -> Result<ImportReport, ContextError> {
        import(
            &self.data_dir,
            &self.ada,
            Redactor::standard(),
            options,
            &mut text.as_bytes(),
        )
    }

    fn count(&self) -> u64 {
        let stats = stats(&self.data_dir, &self.ada).unwrap();
        stats
            .databases
            .iter()
            .flat_map(|test_folder| test_folder.items.values())
            .sum()
    }
}

/// Returns the lines of an export without the header, which contains the time.
fn lines(export: &str) -> Vec<&str> {
    export.lines().skip(1).collect()
}

/// Returns whether any file below a folder contains these bytes, ignoring case.
pub(crate) fn is_anywhere(folder: &Path, needle: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_anywhere(&path, needle);
        }
        let bytes = std::fs::read(&path).unwrap().to_ascii_lowercase();
        bytes
            .windows(needle.len())
            .any(|window| window == needle.as_bytes())
    })
}

#[test]
fn exported_data_is_imported_unchanged() {
    let data = TestData::with_items();
    let exported = data.export(&DataSelection::Everything);
    let first: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["format"], &first["version"]),
        (&"turnbuckle-memory".into(), &1.into())
    );

    let other = TestData::empty();
    let imported = other.import(&exported, &ImportOptions::default()).unwrap();

    assert_eq!(
        (imported.new, imported.unchanged, imported.bad_line_count),
        (4, 0, 0)
    );
    assert_eq!(
        lines(&other.export(&DataSelection::Everything)),
        lines(&exported)
    );
    let again = other.import(&exported, &ImportOptions::default()).unwrap();
    assert_eq!((again.new, again.unchanged), (0, 4));
    let query = MemoryQuery::new(ItemKind::Checkpoint, "zanzibar");
    let project = other
        .data_dir
        .open_project_by_id(&other.ada, data.project(0).id())
        .unwrap()
        .unwrap();
    assert_eq!(memory::search(&[&project], &query).unwrap().len(), 1);
    let left = std::fs::read_dir(other.data.path().join(other.ada.id())).unwrap();
    let is_put_aside = |path: std::path::PathBuf| path.extension().is_some_and(|end| end == "tmp");
    assert!(
        !left
            .into_iter()
            .any(|entry| is_put_aside(entry.unwrap().path()))
    );
}

#[test]
fn one_project_can_be_exported_and_imported_into_another() {
    let data = TestData::with_items();
    let exported = data.export(&DataSelection::Project(data.project(0).id().to_owned()));
    assert_eq!(lines(&exported).len(), 3);
    let mut options = ImportOptions::default();
    options.into = Some(data.folders[1].path().to_str().unwrap().to_owned());
    let imported = data.import(&exported, &options).unwrap();
    assert_eq!(imported.new, 2);
    let query = MemoryQuery::new(ItemKind::Checkpoint, "zanzibar");
    assert_eq!(
        memory::search(&[&data.open(1)], &query).unwrap()[0]
            .item
            .branch,
        "a/b"
    );
    let unknown = export(
        &data.data_dir,
        &data.ada,
        &DataSelection::Project("0".repeat(16)),
        &mut Vec::new(),
    );
    assert!(matches!(unknown.unwrap_err(), ContextError::NotFound(_)));
}

#[test]
fn an_import_with_a_bad_line_changes_nothing() {
    let data = TestData::with_items();
    let exported = data.export(&DataSelection::Everything);
    let other = TestData::empty();
    let huge = format!(
        "{{\"type\":\"item\",\"body\":\"{}\"}}",
        "x".repeat(5 * 1024 * 1024)
    );
    let too_long = format!(
        "{{\"type\":\"item\",\"kind\":\"skill\",\"title\":\"t\",\"body\":\"b\",\"detail\":\"{}\"}}",
        "d".repeat(4_001)
    );
    let bad = [
        "{\"type\":\"item\",\"kind\":\"poem\",\"title\":\"t\",\"body\":\"b\"}",
        "{\"type\":\"item\"",
        "[1, 2",
        "{\"type\":\"project\",\"root\":\"relative\"}",
        "{\"type\":\"collection\",\"branch\":\"x\",\"vector_size\":0}",
        &huge,
        &too_long,
    ];
    let spoiled = format!("{exported}{}\n\n", bad.join("\n"));
    let error = other
        .import(&spoiled, &ImportOptions::default())
        .unwrap_err();
    assert!(
        error.to_string().contains("7 lines are invalid: line 9: "),
        "{error}"
    );
    assert_eq!(other.count(), 0);

    let mut options = ImportOptions::default();
    options.skip_bad_lines = true;
    let imported = other.import(&spoiled, &options).unwrap();
    assert_eq!((imported.new, imported.bad_line_count), (4, 7));
    let numbers: Vec<u64> = imported.bad_lines.iter().map(|bad| bad.line).collect();
    assert_eq!(numbers, [9, 10, 11, 12, 13, 14, 15]);
    assert!(imported.bad_lines[5].reason.contains("longer than"));
    assert!(
        imported.bad_lines[6]
            .reason
            .contains("`description` has 4001")
    );
}

#[test]
fn a_file_that_is_not_an_export_is_rejected() {
    let data = TestData::empty();
    for (text, says) in [
        ("", "not an export"),
        ("hello\n", "not an export"),
        ("{\"format\":\"other\",\"version\":1}\n", "not an export"),
        (
            "{\"format\":\"turnbuckle-memory\",\"version\":9}\n",
            "newer program",
        ),
        (
            "{\"format\":\"turnbuckle-memory\",\"version\":1}\n{\"type\":\"item\",\"kind\":\"skill\",\"title\":\"t\",\"body\":\"b\",\"detail\":\"d\"}\n",
            "line 2: comes before the first project",
        ),
    ] {
        let error = data.import(text, &ImportOptions::default()).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    assert!(
        data.import(&"\0".repeat(9_000_000), &ImportOptions::default())
            .is_err()
    );
}

#[test]
fn imported_items_are_redacted() {
    let data = TestData::empty();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let text = format!(
        "{{\"format\":\"turnbuckle-memory\",\"version\":1}}\n{{\"type\":\"shared\"}}\n{{\"type\":\"item\",\"kind\":\"skill\",\"title\":\"Push\",\"body\":\"use {token}\",\"detail\":\"d\",\"tags\":[\"{token}\"],\"meta\":{{\"k\":[\"{token}\"]}}}}\n"
    );
    let imported = data.import(&text, &ImportOptions::default()).unwrap();
    assert_eq!(imported.redacted.values().sum::<u32>(), 3);
    assert!(!is_anywhere(data.data.path(), &token.to_ascii_lowercase()));
    let exported = data.export(&DataSelection::Shared);
    assert!(exported.contains("[REDACTED:") && !exported.contains(&token));
}

#[test]
fn the_newer_of_two_skills_with_one_name_is_kept() {
    let data = TestData::with_items();
    let old = data.export(&DataSelection::Shared);
    let shared = data.data_dir.open_shared(&data.ada).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(3));
    memory::save(
        &shared,
        Redactor::standard(),
        NewItem::skill("fly", "How to fly", "Glide."),
    )
    .unwrap();
    let new = data.export(&DataSelection::Shared);
    data.import(&old, &ImportOptions::default()).unwrap();
    assert_eq!(
        memory::find_skill(&shared, "Fly").unwrap().unwrap().body,
        "Glide."
    );
    let other = TestData::empty();
    other.import(&old, &ImportOptions::default()).unwrap();
    let imported = other.import(&new, &ImportOptions::default()).unwrap();
    assert_eq!((imported.new, imported.updated), (0, 1));
    let shared = other.data_dir.open_shared(&other.ada).unwrap();
    assert_eq!(
        memory::find_skill(&shared, "Fly").unwrap().unwrap().body,
        "Glide."
    );
}

#[test]
fn stats_count_stored_data() {
    let data = TestData::with_items();
    let stats = stats(&data.data_dir, &data.ada).unwrap();
    assert_eq!(stats.databases.len(), 3);
    let shared = stats
        .databases
        .iter()
        .find(|test_folder| test_folder.project.is_none())
        .unwrap();
    assert_eq!(shared.items["skill"], 1);
    let id = data.project(0).id().to_owned();
    let one = stats
        .databases
        .iter()
        .find(|test_folder| test_folder.project.as_deref() == Some(&id))
        .unwrap();
    assert_eq!((one.items["checkpoint"], one.items["remediation"]), (1, 1));
    assert_eq!(one.root.as_deref(), data.project(0).root().to_str());
    assert!(one.bytes > 10_000 && one.newest.is_some());
    let nothing =
        turnbuckle_context::transfer::stats(&data.data_dir, &Owner::for_user("bob")).unwrap();
    assert!(nothing.databases.is_empty());
}

#[test]
fn deleted_items_leave_no_text_in_any_file() {
    let data = TestData::with_items();
    let id = data.save(
        0,
        NewItem::checkpoint("the xylophone plan")
            .title("Xylophone")
            .tags(["marimba"]),
    );
    data.save(0, NewItem::checkpoint("the harpsichord plan"));
    assert!(is_anywhere(data.data.path(), "xylophone") && is_anywhere(data.data.path(), "marimba"));

    let forgotten = delete(&data.data_dir, &data.ada, &DeleteRequest::Item(id.clone())).unwrap();

    assert_eq!((forgotten.items, forgotten.traceless), (1, true));
    for word in ["xylophon", "marimba"] {
        assert!(!is_anywhere(data.data.path(), word), "{word}");
    }
    assert!(is_anywhere(data.data.path(), "harpsichord"));
    let again = delete(&data.data_dir, &data.ada, &DeleteRequest::Item(id)).unwrap_err();
    assert!(matches!(again, ContextError::NotFound(_)));
    let found = MemoryQuery::new(ItemKind::Checkpoint, "plan");
    assert_eq!(memory::search(&[&data.open(0)], &found).unwrap().len(), 1);
}

#[test]
fn items_can_be_deleted_by_kind_and_age() {
    let data = TestData::with_items();
    let items = |selection, kind, before| DeleteRequest::Items {
        selection,
        kind,
        before,
    };
    let delete_data = |what: &DeleteRequest| delete(&data.data_dir, &data.ada, what).unwrap();
    let none = delete_data(&items(DataSelection::Everything, None, Some(1_000)));
    assert_eq!((none.items, data.count()), (0, 4));
    let one = delete_data(&items(
        DataSelection::Everything,
        Some(ItemKind::Remediation),
        None,
    ));
    assert_eq!((one.items, data.count()), (1, 3));
    assert!(!is_anywhere(data.data.path(), "quokka"));
    let of_project = DataSelection::Project(data.project(0).id().to_owned());
    assert_eq!(
        delete_data(&items(of_project, None, Some(i64::MAX))).items,
        1
    );
    assert!(!is_anywhere(data.data.path(), "zanzibar"));
    assert_eq!(
        delete_data(&items(DataSelection::Shared, None, None)).items,
        1
    );
    assert_eq!(data.count(), 1);
}

#[test]
fn a_project_and_all_data_of_an_owner_can_be_deleted() {
    let data = TestData::with_items();
    let id = data.project(0).id().to_owned();
    let delete_data = |what: &DeleteRequest| delete(&data.data_dir, &data.ada, what);
    assert_eq!(
        delete_data(&DeleteRequest::All(DataSelection::Project(id.clone())))
            .unwrap()
            .files,
        1
    );
    assert!(delete_data(&DeleteRequest::All(DataSelection::Project(id))).is_err());
    assert!(
        delete_data(&DeleteRequest::All(DataSelection::Project(
            "../../x".to_owned()
        )))
        .is_err()
    );
    assert!(!is_anywhere(data.data.path(), "zanzibar"));
    assert_eq!(data.count(), 2);
    assert_eq!(
        delete_data(&DeleteRequest::All(DataSelection::Everything))
            .unwrap()
            .files,
        2
    );
    assert_eq!(std::fs::read_dir(data.data.path()).unwrap().count(), 0);
    data.save(0, NewItem::checkpoint("begin again"));
    assert_eq!(data.count(), 1);
}

#[test]
fn collections_are_created_by_saving_and_deleted_by_their_owner() {
    let data = TestData::with_items();
    let (ada, bob) = (&data.ada, Owner::for_user("bob"));
    let listed = collections::list(&data.data_dir, ada).unwrap();
    let name = collections::name(ada, data.project(0).id(), "a/b");
    assert!(name.ends_with("/a_b") && name.starts_with("owner_"));
    let found = listed
        .iter()
        .find(|collection| collection.name == name)
        .unwrap();
    assert_eq!((found.point_count, found.vector_size), (1, 0));

    let created = collections::create(&data.data_dir, ada, &name, 384).unwrap();
    assert_eq!((created.point_count, created.vector_size), (1, 384));
    for size in [0, 65_537] {
        assert!(collections::create(&data.data_dir, ada, &name, size).is_err());
    }
    assert!(collections::list(&data.data_dir, &bob).unwrap().is_empty());
    assert!(
        collections::find(&data.data_dir, &bob, &name)
            .unwrap()
            .is_none()
    );
    let foreign = collections::create(&data.data_dir, &bob, &name, 4).unwrap_err();
    assert!(foreign.to_string().contains("is another owner"));

    let as_foreign = collections::delete(&data.data_dir, &bob, &name).unwrap_err();
    let unknown = name.replace("/a_b", "/c");
    let as_unknown = collections::delete(&data.data_dir, ada, &unknown).unwrap_err();
    assert_eq!(
        as_foreign.to_string().replace("/a_b", "/c"),
        as_unknown.to_string()
    );
    assert!(matches!(as_foreign, ContextError::NotFound(_)));
    for wrong in [
        "",
        "x",
        "owner_1/project_2/main",
        "../../a/b",
        &"/".repeat(9_000),
    ] {
        assert!(collections::delete(&data.data_dir, ada, wrong).is_err());
        assert!(matches!(
            collections::create(&data.data_dir, ada, wrong, 4),
            Err(ContextError::InvalidRequest(_))
        ));
    }

    let removed = collections::delete(&data.data_dir, ada, &name).unwrap();
    assert_eq!(removed.items, 1);
    assert!(
        collections::find(&data.data_dir, ada, &name)
            .unwrap()
            .is_none()
    );
    assert_eq!(data.count(), 3);
}

#[test]
fn branches_with_the_same_label_are_distinguished() {
    let data = TestData::with_items();
    let data_dir = &data.data_dir;
    let test_folder = collections::name(&data.ada, data.project(0).id(), "");
    let name = |branch: &str| format!("{test_folder}{branch}");
    let names = || -> Vec<String> {
        let all = collections::list(data_dir, &data.ada).unwrap().into_iter();
        let names = all.filter_map(|one| Some(one.name.strip_prefix(&test_folder)?.to_owned()));
        names.collect()
    };
    assert_eq!(names(), ["a_b", "default"]);
    data.save(0, NewItem::checkpoint("x").branch("a_b"));
    assert_eq!(names(), ["a/b", "a_b", "default"]);
    assert_eq!(
        collections::delete(data_dir, &data.ada, &name("a_b"))
            .unwrap()
            .items,
        1
    );
    assert_eq!(names(), ["a_b", "default"]);

    data.save(0, NewItem::checkpoint("x").branch("p/q_r"));
    data.save(0, NewItem::checkpoint("x").branch("p_q/r"));
    let error = collections::delete(data_dir, &data.ada, &name("p_q_r")).unwrap_err();
    assert!(error.to_string().contains("`p/q_r`, `p_q/r`"), "{error}");
    assert_eq!(
        collections::delete(data_dir, &data.ada, &name("p/q_r"))
            .unwrap()
            .items,
        1
    );
    assert_eq!(
        collections::delete(data_dir, &data.ada, &name("p_q_r"))
            .unwrap()
            .items,
        1
    );
}

#[test]
fn large_imports_and_deletions_use_small_transactions() {
    let data = TestData::empty();
    let count: u64 = 800;
    let mut text =
        "{\"format\":\"turnbuckle-memory\",\"version\":1}\n{\"type\":\"shared\"}\n".to_owned();
    for number in 0..count {
        let body: String = (0..80)
            .map(|word| format!("word{} ", (number * 31 + word * 7) % 5_000))
            .collect();
        text += &format!(
            "{{\"type\":\"item\",\"kind\":\"checkpoint\",\"title\":\"t{number}\",\"body\":\"zanzibar {body}\"}}\n"
        );
    }
    let shared = data.data_dir.open_shared(&data.ada).unwrap();
    let left = || {
        let count = "SELECT count(*) FROM item";
        let count = shared.read(|db| Ok(db.query_row(count, [], |row| row.get::<_, i64>(0))?));
        count.unwrap().unsigned_abs()
    };
    let all = DeleteRequest::Items {
        selection: DataSelection::Shared,
        kind: None,
        before: None,
    };
    // Count how often a reader sees a partial state.
    let seen_during = |work: &(dyn Fn() -> u64 + Sync)| {
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            let mut seen = 0;
            while !working.is_finished() {
                seen += u64::from((1..count).contains(&left()));
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            assert_eq!(working.join().unwrap(), count);
            seen
        })
    };
    let import = || data.import(&text, &ImportOptions::default()).unwrap().new;
    assert!(seen_during(&import) > 0, "all was saved in one transaction");
    let delete_data = || delete(&data.data_dir, &data.ada, &all).unwrap().items;
    assert!(
        seen_during(&delete_data) > 0,
        "all was deleted in one transaction"
    );
    assert_eq!(left(), 0);
    drop(shared);
    let TestData { data, data_dir, .. } = data;
    drop(data_dir);
    assert!(!is_anywhere(data.path(), "zanzibar"));
}

#[test]
fn words_of_a_deleted_index_are_in_no_file() {
    let data = TestData::with_items();
    let folder = data.folders[0].path().canonicalize().unwrap();
    std::fs::write(folder.join("a.rs"), "fn xylophone() { marimba() }").unwrap();
    let mut watch = |_| std::ops::ControlFlow::Continue(());
    let options = turnbuckle_context::evaluation::code_index::IndexOptions::default();
    let redactor = Redactor::standard();
    let database = data.open(0);
    turnbuckle_context::evaluation::code_index::index(
        &database, &folder, "main", &options, redactor, &mut watch,
    )
    .unwrap();
    let name = collections::name(&data.ada, data.project(0).id(), "main");

    let removed = collections::delete(&data.data_dir, &data.ada, &name).unwrap();

    assert_eq!((removed.files, removed.chunks), (1, 1));
    drop(database);
    let TestData { data, data_dir, .. } = data;
    // The last connection to close moves the WAL to the file.
    drop(data_dir);
    assert!(is_anywhere(data.path(), "zanzibar"));
    assert!(!is_anywhere(data.path(), "xylophon") && !is_anywhere(data.path(), "marimba"));
}

#[test]
fn a_damaged_project_does_not_hide_the_others() {
    let data = TestData::with_items();
    let damaged = data
        .data
        .path()
        .join(data.ada.id())
        .join("0123456789abcdef.db");
    std::fs::write(damaged, "no database at all, and long enough".repeat(100)).unwrap();

    let stats = stats(&data.data_dir, &data.ada).unwrap();
    assert_eq!((stats.databases.len(), stats.damaged.len()), (3, 1));
    let exported = export(
        &data.data_dir,
        &data.ada,
        &DataSelection::Everything,
        &mut Vec::new(),
    )
    .unwrap();
    assert_eq!((exported.items, exported.damaged.len()), (4, 1));
    assert!(exported.damaged[0].contains("damaged"));
    assert!(
        !collections::list(&data.data_dir, &data.ada)
            .unwrap()
            .is_empty()
    );
    let all = DeleteRequest::Items {
        selection: DataSelection::Everything,
        kind: None,
        before: None,
    };
    let error = delete(&data.data_dir, &data.ada, &all).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
    assert_eq!(data.count(), 0);
}

#[test]
fn leftovers_of_a_killed_import_are_removed_by_the_next_one() {
    let data = TestData::with_items();
    let staging = Leftovers::in_folder(&data.folder());
    let exported = data.export(&DataSelection::Everything);
    data.import(&exported, &ImportOptions::default()).unwrap();
    staging.assert_only_the_live_one_is_left();
}

#[test]
fn delete_removes_staging_files_of_dead_imports_only() {
    let data = TestData::with_items();
    let staging = Leftovers::in_folder(&data.folder());
    let orphan = data.folder().join("0123456789abcdef.db-wal");
    std::fs::write(&orphan, "xylophone in a log").unwrap();
    let none_is_old = DeleteRequest::Items {
        selection: DataSelection::Everything,
        kind: None,
        before: Some(0),
    };
    let forgotten = delete(&data.data_dir, &data.ada, &none_is_old).unwrap();
    assert_eq!((forgotten.items, forgotten.traceless), (0, false));
    staging.assert_only_the_live_one_is_left();
    assert!(!orphan.exists());

    let forgotten = delete(
        &data.data_dir,
        &data.ada,
        &DeleteRequest::All(DataSelection::Everything),
    );
    assert!(!forgotten.unwrap().traceless);
    staging.assert_only_the_live_one_is_left();
    drop(staging);
    let forgotten = delete(
        &data.data_dir,
        &data.ada,
        &DeleteRequest::All(DataSelection::Everything),
    );
    assert!(forgotten.unwrap().traceless);
    assert!(!data.folder().exists());
}

/// The staging files of a killed import and of a running one.
struct Leftovers {
    dead: std::path::PathBuf,
    live: std::path::PathBuf,
    _lock: std::fs::File,
}

impl Leftovers {
    fn in_folder(folder: &Path) -> Self {
        let (dead, live) = (
            folder.join("import_dead.tmp"),
            folder.join("import_live.tmp"),
        );
        std::fs::write(&dead, "staged").unwrap();
        let lock = std::fs::File::create(&live).unwrap();
        fs4::FileExt::try_lock(&lock).unwrap();
        Self {
            dead,
            live,
            _lock: lock,
        }
    }

    fn assert_only_the_live_one_is_left(&self) {
        assert_eq!((self.dead.exists(), self.live.exists()), (false, true));
    }
}

/// Simulates a delete that is killed before it removes the traces.
fn forget_half(data: &TestData, id: &str, is_deleted: bool) {
    let database = data.open(0);
    let marker = database.path().with_extension("forget");
    std::fs::write(marker, format!("\n{{\"item\":\"{id}\"}}\n{{\"ite")).unwrap();
    if is_deleted {
        let delete = "DELETE FROM item WHERE id = ?1";
        database.write(|db| Ok(db.execute(delete, [id])?)).unwrap();
    }
}

#[test]
fn opening_a_database_finishes_an_interrupted_delete() {
    for is_deleted in [false, true] {
        let data = TestData::empty();
        let id = data.save(0, NewItem::checkpoint("xylophone in the attic"));
        data.save(0, NewItem::checkpoint("zanzibar stays"));
        forget_half(&data, &id, is_deleted);
        assert!(is_anywhere(data.data.path(), "xylophone"));

        // The other process is dead, and its connections are closed.
        let TestData {
            data,
            folders,
            data_dir,
            ada,
        } = data;
        drop(data_dir);
        let data = TestData {
            data_dir: DataDir::new(data.path()),
            data,
            folders,
            ada,
        };
        data.open(0);
        assert!(!is_anywhere(data.data.path(), "xylophone"));
        assert!(is_anywhere(data.data.path(), "zanzibar"));
        assert!(
            !is_anywhere(data.data.path(), "item\""),
            "the marker is left"
        );
    }
}

#[test]
fn a_delete_finishes_an_interrupted_one_in_another_project() {
    let data = TestData::empty();
    let id = data.save(0, NewItem::checkpoint("xylophone in the attic"));
    let other = data.save(1, NewItem::checkpoint("something else"));
    forget_half(&data, &id, true);
    let forgotten = delete(&data.data_dir, &data.ada, &DeleteRequest::Item(other)).unwrap();
    assert!(forgotten.traceless);
    assert!(!is_anywhere(data.data.path(), "xylophone"));
    assert_eq!(data.count(), 0);
}

#[test]
fn an_interrupted_delete_of_a_project_is_finished() {
    let data = TestData::empty();
    data.save(0, NewItem::checkpoint("xylophone in the attic"));
    let path = data.open(0).path().to_owned();
    std::fs::write(path.with_extension("forget"), "\n\"file\"\n").unwrap();
    let data_dir = DataDir::new(data.data.path());
    let id = data.project(0).id().to_owned();
    assert!(
        data_dir
            .open_project_by_id(&data.ada, &id)
            .unwrap()
            .is_none()
    );
    assert!(!is_anywhere(data.data.path(), "xylophone"));
    assert!(!path.with_extension("forget").exists());
}

/// Uncommitted data of a killed process is only in the WAL.
#[test]
fn delete_truncates_wal_files_even_if_nothing_matches() {
    let data = TestData::empty();
    data.save(0, NewItem::checkpoint("zanzibar"));
    let log = {
        let mut log = data.open(0).path().as_os_str().to_owned();
        log.push("-wal");
        std::path::PathBuf::from(log)
    };
    let mut file = std::fs::File::options().append(true).open(&log).unwrap();
    std::io::Write::write_all(&mut file, b"xylophone, not committed").unwrap();
    let none_is_old = DeleteRequest::Items {
        selection: DataSelection::Everything,
        kind: None,
        before: Some(0),
    };
    let forgotten = delete(&data.data_dir, &data.ada, &none_is_old).unwrap();
    assert!(forgotten.traceless);
    assert!(!is_anywhere(data.data.path(), "xylophone"));
}

#[test]
fn a_damaged_page_does_not_prevent_the_export_of_other_items() {
    const ITEMS: u64 = 60;
    let data = TestData::empty();
    for number in 0..ITEMS {
        let body = format!("number {number} {}", "and some words ".repeat(100));
        data.save(0, NewItem::checkpoint(&body));
    }
    data.save(1, NewItem::checkpoint("in another project"));
    let path = data.open(0).path().to_owned();
    let TestData {
        data,
        data_dir,
        ada,
        ..
    } = data;
    drop(data_dir);
    let whole = std::fs::read(&path).unwrap();
    let (mut damaged, mut empty) = (0, 0);
    for page in 1..whole.len() / 4096 {
        let mut bytes = whole.clone();
        bytes[page * 4096..][..4096].fill(0x5A);
        std::fs::write(&path, &bytes).unwrap();
        let data_dir = DataDir::new(data.path());
        let mut text = Vec::new();
        let exported = export(&data_dir, &ada, &DataSelection::Everything, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("in another project"), "page {page}");
        let items = exported.items - 1;
        assert_eq!(text.matches("\"kind\"").count() as u64, exported.items);
        assert!(
            items == ITEMS || !exported.damaged.is_empty(),
            "page {page}"
        );
        damaged += usize::from(items < ITEMS);
        empty += usize::from(items == 0);
        // A leaf page contains a few items; without the schema or the root page none is found.
        assert!(items == 0 || items + 8 >= ITEMS, "page {page}: {items}");
        drop(data_dir);
    }
    assert!(damaged > 10, "{damaged}");
    assert!(empty <= 4, "{empty} pages lose everything");
    std::fs::write(&path, &whole).unwrap();
}

#[test]
fn an_empty_database_file_is_reported_and_not_changed() {
    let data = TestData::with_items();
    let path = data.open(0).path().to_owned();
    let TestData { data, ada, .. } = data;
    for suffix in ["-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let _ = std::fs::remove_file(name);
    }
    std::fs::write(&path, "").unwrap();
    let data_dir = DataDir::new(data.path());
    let exported = export(&data_dir, &ada, &DataSelection::Everything, &mut Vec::new()).unwrap();
    assert_eq!(exported.damaged.len(), 1);
    assert!(exported.damaged[0].contains("empty or truncated"));
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
}
