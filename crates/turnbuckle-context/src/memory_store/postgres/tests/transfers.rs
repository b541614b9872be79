use serde_json::json;

use super::*;
use crate::{
    Redactor,
    transfer::{self, DataLocation, DataSelection, DeleteRequest, ImportOptions},
};

/// Returns an export without its header, which has the time.
fn export<'d>(data: impl Into<DataLocation<'d>>) -> String {
    let mut written = Vec::new();
    let report = transfer::export(data, &ada(), &DataSelection::Everything, &mut written).unwrap();
    assert!(report.damaged.is_empty(), "{:?}", report.damaged);
    let text = String::from_utf8(written).unwrap();
    text.split_once('\n').unwrap().1.to_owned()
}

fn import<'d>(data: impl Into<DataLocation<'d>>, text: &str) -> u64 {
    let header = "{\"type\":\"header\",\"format\":\"turnbuckle-memory\",\"version\":1}\n";
    let text = format!("{header}{text}");
    let options = ImportOptions::default();
    let mut from = text.as_bytes();
    let report = transfer::import(data, &ada(), Redactor::standard(), &options, &mut from);
    report.unwrap().new
}

/// Fills a store with items that use every member.
fn fill(store: &dyn MemoryStore) {
    let shared = Partition::shared(&ada());
    for (project, root) in [("/srv/one", "/srv/one"), ("/srv/two", "/srv/two")] {
        let project = crate::Project::from_stored(project).unwrap();
        let partition = Partition::project(&ada(), project.id());
        block_on(store.create_project(&partition, root)).unwrap();
        block_on(store.create_collection(&partition, "a_b", 384)).unwrap();
        for number in 0..30 {
            let item = NewItem::checkpoint(format!("{root} {number}\n\0 ünïcode 🦀 \u{e000}"))
                .title(format!("step {number}"))
                .branch("feature/x")
                .tags(["red", "grün \"x\""])
                .meta(
                    json!({ "a": { "b": [1, null, 2.5] } })
                        .as_object()
                        .unwrap()
                        .clone(),
                )
                .confidence(0.3);
            let saved = PreparedItem::new(item, number % 3, TIME + i64::from(number));
            let saved = block_on(store.save(&partition, saved)).unwrap();
            block_on(store.count_use(&partition, &[&saved.item.id])).unwrap();
        }
    }
    for item in [
        NewItem::remediation("E0502: cannot borrow", "clone it").detail("in a loop"),
        NewItem::skill("Deploy it", "how to deploy", "push"),
    ] {
        block_on(store.save(&shared, PreparedItem::new(item, 0, TIME))).unwrap();
    }
}

#[test]
fn data_moves_from_sqlite_to_postgresql_and_back_without_loss() {
    let server = start();
    let store =
        PostgresMemoryStore::connect_blocking(PostgresOptions::from_url(&server.url()).unwrap())
            .unwrap();
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [first, local, last] = folders.each_ref().map(|folder| DataDir::new(folder.path()));
    fill(&SqliteMemoryStore::new(&first));
    let original = export(&first);
    assert_eq!(original.lines().count(), 3 + 2 + 62);

    let shared = DataLocation::with_memory(&local, &store);
    assert_eq!(import(shared, &original), 62);
    assert_eq!(export(shared), original);
    assert_eq!(
        import(shared, &original),
        0,
        "a second import changes nothing"
    );
    assert_eq!(export(shared), original);
    let local_only = transfer::stats(&local, &ada()).unwrap();
    assert!(local_only.databases.is_empty(), "nothing is in local files");
    let stats = transfer::stats(shared, &ada()).unwrap();
    assert_eq!(stats.databases.len(), 3);
    assert_eq!(
        stats,
        transfer::DataStats {
            databases: stats
                .databases
                .iter()
                .cloned()
                .map(|mut one| {
                    one.bytes = 0;
                    one
                })
                .collect(),
            damaged: Vec::new(),
        }
    );

    assert_eq!(import(&last, &export(shared)), 62);
    assert_eq!(export(&last), original);
}

#[test]
fn data_is_deleted_from_postgresql() {
    let server = start();
    let store =
        PostgresMemoryStore::connect_blocking(PostgresOptions::from_url(&server.url()).unwrap())
            .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let local = DataDir::new(folder.path());
    let data = DataLocation::with_memory(&local, &store);
    fill(&store);
    let project = crate::Project::from_stored("/srv/one").unwrap();
    let one = Partition::project(&ada(), project.id());
    let newest = block_on(store.list(&one, ItemKind::Checkpoint, None, 1)).unwrap();
    let delete = |what: DeleteRequest| transfer::delete(data, &ada(), &what);
    let report = delete(DeleteRequest::Item(newest[0].id.clone())).unwrap();
    assert_eq!((report.items, report.traceless), (1, false));
    delete(DeleteRequest::Item(newest[0].id.clone())).unwrap_err();
    let of_project = DataSelection::Project(project.id().to_owned());
    let report = delete(DeleteRequest::All(of_project.clone())).unwrap();
    assert_eq!((report.items, report.files), (29, 0));
    delete(DeleteRequest::All(of_project)).unwrap_err();
    let report = delete(DeleteRequest::All(DataSelection::Everything)).unwrap();
    assert_eq!(report.items, 32);
    assert_eq!(
        server
            .execute("SELECT count(*) FROM turnbuckle.partition")
            .unwrap(),
        "0"
    );
}
