//! Export and import of a partition.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use tokio::sync::mpsc;
use tokio_postgres::Transaction;

use super::{
    branches,
    error::AttemptError,
    items::{self, COLUMNS, item_from_row},
    params,
    partitions::{self, PartitionId},
    session::{Session, TransactionKind},
    text,
};
use crate::{
    memory::{ItemKind, PreparedItem},
    memory_store::{
        ExportEntry, ExportSink, ImportCounts, ImportEntry, ImportSource, MemoryStoreError,
        Partition, PartitionExport,
    },
};

/// How many items an export reads at once.
const EXPORT_PAGE: usize = 200;
/// Maximum number of entries, and of bytes of their texts, in one transaction of an import.
const IMPORT_ENTRIES: usize = 100;
const IMPORT_BYTES: usize = 1 << 20;

/// Passes one snapshot of a partition to a sink.
pub(super) async fn export(
    session: &Session,
    partition: &Partition,
    sink: ExportSink<'_>,
) -> Result<PartitionExport, MemoryStoreError> {
    let (pages, mut received) = mpsc::channel::<Vec<ExportEntry>>(1);
    let reading = {
        let (partition, is_started) = (partition.clone(), AtomicBool::new(false));
        session.export(move |tx| {
            let (partition, pages) = (partition.clone(), pages.clone());
            let is_repeated = is_started.swap(true, Ordering::Relaxed);
            Box::pin(async move {
                // The sink has received entries of another snapshot.
                if is_repeated {
                    let error = "the connection was lost during the export".into();
                    return Err(MemoryStoreError::TryAgain(error).into());
                }
                send_pages(tx, &partition, &pages).await
            })
        })
    };
    let mut exported = PartitionExport::default();
    while let Some(page) = received.recv().await {
        for entry in page {
            exported.items += u64::from(matches!(entry, ExportEntry::Item(_)));
            sink(entry)?;
        }
    }
    reading.await?;
    Ok(exported)
}

/// Sends the collections by label, then the items by number.
async fn send_pages(
    tx: &Transaction<'_>,
    partition: &Partition,
    pages: &mpsc::Sender<Vec<ExportEntry>>,
) -> Result<(), AttemptError> {
    let Some(place) = partitions::find(tx, partition).await? else {
        return Ok(());
    };
    let collections = "SELECT label, vector_size FROM turnbuckle.collection \
                       WHERE partition = $1 ORDER BY label COLLATE \"C\"";
    let mut page = Vec::new();
    for row in tx
        .query_typed(collections, params![place.0 => INT8])
        .await?
    {
        page.push(ExportEntry::Collection {
            label: text::decode(row.try_get(0)?),
            vector_size: u32::try_from(row.try_get::<_, i64>(1)?).unwrap_or_default(),
        });
    }
    let select = format!(
        "SELECT {COLUMNS} FROM turnbuckle.item i WHERE partition = $1 AND number > $2 \
         ORDER BY number LIMIT $3"
    );
    let mut after = i64::MIN;
    loop {
        // After an error of the sink, the receiver is gone.
        if pages.send(std::mem::take(&mut page)).await.is_err() {
            return Err(MemoryStoreError::Cancelled.into());
        }
        let parameters = params![
            place.0 => INT8,
            after => INT8,
            items::count(EXPORT_PAGE) => INT8,
        ];
        for row in tx.query_typed(&select, parameters).await? {
            let item = item_from_row(&row)?;
            after = item.number.get();
            page.push(ExportEntry::Item(Box::new(item)));
        }
        if page.is_empty() {
            return Ok(());
        }
    }
}

/// Stores entries in transactions of limited size.
pub(super) async fn import(
    session: &Session,
    partition: &Partition,
    entries: ImportSource<'_>,
) -> Result<ImportCounts, MemoryStoreError> {
    let mut counts = ImportCounts::default();
    loop {
        let (batch, end) = next_batch(entries);
        let (partition, batch) = (partition.clone(), Arc::new(batch));
        let stored = session.write(TransactionKind::Write, move |tx| {
            let (partition, batch) = (partition.clone(), batch.clone());
            Box::pin(async move {
                // Also without entries, to report an unknown project.
                let place = partitions::lock(tx, &partition).await?;
                store(tx, place, &batch).await
            })
        });
        let stored = stored.await?;
        counts.new += stored.new;
        counts.updated += stored.updated;
        counts.unchanged += stored.unchanged;
        match end {
            BatchEnd::Full => {}
            BatchEnd::Done => return Ok(counts),
            BatchEnd::Failed(error) => return Err(error),
        }
    }
}

/// Why a batch has no more entries. After the last one, the source is not asked again.
enum BatchEnd {
    Full,
    Done,
    Failed(MemoryStoreError),
}

/// Takes entries for one transaction.
fn next_batch(entries: ImportSource<'_>) -> (Vec<ImportEntry>, BatchEnd) {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < IMPORT_ENTRIES && bytes < IMPORT_BYTES {
        match entries.next() {
            None => return (batch, BatchEnd::Done),
            Some(Err(error)) => return (batch, BatchEnd::Failed(error.into())),
            Some(Ok(entry)) => {
                if let ImportEntry::Item { item, .. } = &entry {
                    bytes += item.item.body.len() + item.item.detail.len();
                }
                batch.push(entry);
            }
        }
    }
    (batch, BatchEnd::Full)
}

async fn store(
    tx: &Transaction<'_>,
    place: PartitionId,
    batch: &[ImportEntry],
) -> Result<ImportCounts, AttemptError> {
    let (mut counts, mut bytes) = (ImportCounts::default(), 0);
    for entry in batch {
        match entry {
            ImportEntry::Collection { label, vector_size } => {
                branches::create(tx, place, label, u64::from(*vector_size), false).await?;
            }
            ImportEntry::Item { item, id } => {
                bytes += store_item(tx, place, item, id.as_deref(), &mut counts).await?;
            }
        }
    }
    if !batch.is_empty() {
        partitions::change(tx, place, bytes).await?;
    }
    Ok(counts)
}

/// Stores an item unless its duplicate is as new. Returns the change of the size.
async fn store_item(
    tx: &Transaction<'_>,
    place: PartitionId,
    item: &PreparedItem,
    id: Option<&str>,
    counts: &mut ImportCounts,
) -> Result<i64, AttemptError> {
    let mut prepared = item.clone();
    let kind = prepared.item.kind;
    match items::find_by_hash(tx, place, kind, prepared.hash()).await? {
        None => counts.new += 1,
        Some(known) if known.updated < prepared.item.updated => counts.updated += 1,
        Some(_) => {
            counts.unchanged += 1;
            return Ok(0);
        }
    }
    if let Some(id) = id
        && ItemKind::from_id(id) == Some(kind)
        && is_free(tx, place, id).await?
    {
        id.clone_into(&mut prepared.item.id);
    }
    let (_, _, bytes) = items::store(tx, place, prepared).await?;
    Ok(bytes)
}

async fn is_free(tx: &Transaction<'_>, place: PartitionId, id: &str) -> Result<bool, AttemptError> {
    let taken = "SELECT 1 FROM turnbuckle.item WHERE partition = $1 AND id = $2";
    let taken = tx
        .query_typed_opt(taken, params![place.0 => INT8, id => TEXT])
        .await?;
    Ok(taken.is_none())
}
