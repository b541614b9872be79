//! The skills of a running server, and the scans that keep them up to date.

use std::{
    string::FromUtf8Error,
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, spawn_blocking},
    time::Instant,
};
use turnbuckle_protocol::{
    skills::digest,
    types::{BlobResourceContents, ResourceContents, TextResourceContents},
};
use turnbuckle_store::{ChangeBus, ServerChange};

use super::{
    Skill, Skills,
    scan::{self, SkillFolder},
    skill::URI_SCHEME,
    snapshot::{FileBody, LoadedSkill, SkillFile, SkillSnapshot, is_binary},
};
use crate::{
    CacheHint, Contents, Context, RequestError, Resource, Server, request::BoxFuture,
    resources::ResourceProvider, sync::lock,
};

/// Maximum age of a scan that is served without another one.
const MAX_SCAN_AGE: Duration = Duration::from_secs(1);
/// Maximum reads of a changing file per request.
const ATTEMPTS: usize = 3;

/// All skills of a server.
pub(super) struct SkillIndex {
    snapshot: ArcSwap<SkillSnapshot>,
    sources: Mutex<SkillSources>,
    /// Held during a scan; others wait for its result.
    folders: Arc<tokio::sync::Mutex<Vec<SkillFolder>>>,
    has_folders: bool,
    scans: Mutex<ScanState>,
    refresh_interval: Duration,
    cache: CacheHint,
    watch: Mutex<Option<JoinHandle<()>>>,
}

/// The scans so far.
struct ScanState {
    started: u64,
    /// The last completed scan, and when it started.
    last: (u64, Instant),
}

/// The scan that a request needs.
#[derive(Clone, Copy)]
enum ScanRequest {
    /// One that started at this time or later.
    Since(Instant),
    /// One with this number or a higher one.
    Number(u64),
}

/// The skills added in code and those found by scanning.
#[derive(Default)]
struct SkillSources {
    manual: Vec<Arc<LoadedSkill>>,
    scanned: Vec<Arc<LoadedSkill>>,
}

impl SkillIndex {
    /// Adds the skills from code and scans the folders.
    pub(super) fn open(skills: Skills) -> Self {
        let mut folders: Vec<_> = skills.folders.into_iter().map(SkillFolder::new).collect();
        let now = Instant::now();
        let mut sources = SkillSources::default();
        for skill in skills.skills {
            sources.add_manual(skill);
        }
        sources.scanned = folders.iter_mut().flat_map(SkillFolder::scan).collect();
        Self {
            snapshot: ArcSwap::from_pointee(sources.snapshot()),
            sources: Mutex::new(sources),
            has_folders: !folders.is_empty(),
            folders: Arc::new(tokio::sync::Mutex::new(folders)),
            scans: Mutex::new(ScanState {
                started: 0,
                last: (0, now),
            }),
            refresh_interval: skills.refresh_interval,
            cache: skills.cache,
            watch: Mutex::default(),
        }
    }

    /// The current snapshot.
    pub(super) fn snapshot(&self) -> Arc<SkillSnapshot> {
        self.snapshot.load_full()
    }

    pub(super) fn add(&self, skill: Skill, server: &Server) {
        self.rebuild(&*server.store_ref().bus, |sources| {
            sources.add_manual(skill);
        });
    }

    pub(super) fn remove(&self, uri: &str, server: &Server) -> bool {
        self.rebuild(&*server.store_ref().bus, |sources| {
            let previous = sources.manual.len();
            sources.manual.retain(|skill| skill.manifest() != uri);
            sources.manual.len() < previous
        })
    }

    /// Changes the skills, rebuilds the snapshot and publishes the differences.
    fn rebuild<T>(&self, bus: &dyn ChangeBus, change: impl FnOnce(&mut SkillSources) -> T) -> T {
        let mut sources = lock(&self.sources);
        let outcome = change(&mut sources);
        let snapshot = Arc::new(sources.snapshot());
        let previous = self.snapshot.swap(snapshot.clone());
        // Published under the lock, so that notifications keep the order of changes.
        for change in previous.changes(&snapshot) {
            match change {
                ServerChange::ResourcesChanged => bus.publish_list(change, snapshot.list_digest()),
                change => bus.publish(change),
            }
        }
        outcome
    }

    /// Scans the folders, unless a recent scan satisfies the request.
    async fn scan(self: &Arc<Self>, request: ScanRequest, bus: &Arc<dyn ChangeBus>) {
        if !self.has_folders || self.has_scanned(request) {
            return;
        }
        let mut folders = self.folders.clone().lock_owned().await;
        if self.has_scanned(request) {
            return;
        }
        let (index, bus) = (self.clone(), bus.clone());
        // Continues if the caller is dropped: the next caller uses its result.
        let scan = spawn_blocking(move || {
            let scan = index.begin();
            let found = folders.iter_mut().flat_map(SkillFolder::scan).collect();
            index.rebuild(&*bus, |sources| sources.scanned = found);
            lock(&index.scans).last = scan;
        });
        if let Err(error) = scan.await {
            tracing::error!(%error, "scanning for skills failed");
        }
    }

    fn begin(&self) -> (u64, Instant) {
        let mut scans = lock(&self.scans);
        scans.started += 1;
        (scans.started, Instant::now())
    }

    fn has_scanned(&self, request: ScanRequest) -> bool {
        let (number, began) = lock(&self.scans).last;
        match request {
            ScanRequest::Since(moment) => began >= moment,
            ScanRequest::Number(request) => number >= request,
        }
    }

    /// Returns a request for a scan that has not started yet.
    fn next_scan(&self) -> ScanRequest {
        ScanRequest::Number(lock(&self.scans).started + 1)
    }

    /// Refreshes the provider, unless that was done recently.
    pub(super) async fn scan_if_stale(self: &Arc<Self>, server: &Server) {
        let now = Instant::now();
        let since = now.checked_sub(MAX_SCAN_AGE).unwrap_or(now);
        let request = ScanRequest::Since(since);
        self.scan(request, &server.store_ref().bus).await;
    }

    /// Reads a file and checks its bytes against the published digest.
    async fn contents(
        self: Arc<Self>,
        uri: &str,
        server: &Server,
    ) -> Result<Contents, RequestError> {
        self.scan_if_stale(server).await;
        for _ in 0..ATTEMPTS {
            let file = self.snapshot().files.get(uri).cloned();
            let file = file.ok_or_else(RequestError::not_found)?;
            if let Some(bytes) = read_if_current(&file).await? {
                return Ok(contents(&file, bytes));
            }
            let request = self.next_scan();
            self.scan(request, &server.store_ref().bus).await;
        }
        Err(RequestError::internal(
            "the file changes faster than it can be read",
        ))
    }

    async fn watch(index: Weak<Self>, bus: Arc<dyn ChangeBus>, period: Duration) {
        loop {
            tokio::time::sleep(period).await;
            let Some(index) = index.upgrade() else {
                return;
            };
            let request = index.next_scan();
            index.scan(request, &bus).await;
        }
    }
}

impl SkillSources {
    fn add_manual(&mut self, skill: Skill) {
        let skill = Arc::new(skill.into_loaded());
        let same = |cached: &&mut Arc<LoadedSkill>| cached.folder == skill.folder;
        match self.manual.iter_mut().find(same) {
            Some(cached) => *cached = skill,
            None => self.manual.push(skill),
        }
    }

    fn snapshot(&self) -> SkillSnapshot {
        SkillSnapshot::new(self.manual.iter().chain(&self.scanned))
    }
}

impl ResourceProvider for SkillIndex {
    fn owns(&self, uri: &str) -> bool {
        uri.starts_with(URI_SCHEME)
    }

    fn has(&self, uri: &str) -> bool {
        self.snapshot.load().has(uri)
    }

    fn listed(&self) -> Arc<Vec<Arc<Resource>>> {
        self.snapshot.load().listed.clone()
    }

    fn cache(&self) -> CacheHint {
        self.cache
    }

    fn refresh(self: Arc<Self>, server: Server) -> BoxFuture<()> {
        Box::pin(async move { self.scan_if_stale(&server).await })
    }

    fn read(self: Arc<Self>, uri: &str, cx: Context) -> BoxFuture<Result<Contents, RequestError>> {
        let uri = uri.to_owned();
        Box::pin(async move { self.contents(&uri, cx.server()).await })
    }

    fn start(self: Arc<Self>, server: &Server) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let mut watch = lock(&self.watch);
        if self.has_folders && watch.as_ref().is_none_or(JoinHandle::is_finished) {
            let bus = server.store_ref().bus.clone();
            let index = Arc::downgrade(&self);
            *watch = Some(runtime.spawn(Self::watch(index, bus, self.refresh_interval)));
        }
    }
}

impl Drop for SkillIndex {
    fn drop(&mut self) {
        if let Some(watch) = lock(&self.watch).take() {
            watch.abort();
        }
    }
}

/// Limits concurrent reads, because each file may have 16 MiB.
static READ_PERMITS: Semaphore = Semaphore::const_new(8);

/// Returns the bytes of a file, if they match its digest.
async fn read_if_current(file: &SkillFile) -> Result<Option<Bytes>, RequestError> {
    let (path, root) = match &file.body {
        FileBody::InMemory(bytes) => return Ok(Some(bytes.clone())),
        FileBody::OnDisk { path, root } => (path.clone(), root.clone()),
    };
    // Never fails: the semaphore is not closed.
    let _permit = READ_PERMITS.acquire().await;
    let read = spawn_blocking(move || {
        let bytes = scan::read_current(&path, &root)?;
        let digest = digest(&bytes);
        Ok::<_, std::io::Error>((bytes, digest))
    });
    match read.await? {
        Ok((bytes, digest)) if *digest == *file.digest => Ok(Some(bytes.into())),
        // Changed, deleted or inaccessible: another scan decides.
        _ => Ok(None),
    }
}

fn contents(file: &SkillFile, bytes: Bytes) -> Contents {
    let is_binary = file.media_type.is_some_and(is_binary);
    let contents: ResourceContents = match String::from_utf8(bytes.into()) {
        Ok(text) if !is_binary => {
            let media_type = file.media_type.unwrap_or("text/plain");
            TextResourceContents::new(&*file.uri, text)
                .mime_type(media_type)
                .into()
        }
        other => {
            use base64::{Engine, prelude::BASE64_STANDARD};
            let bytes = other.map_or_else(FromUtf8Error::into_bytes, String::into_bytes);
            let media_type = file.media_type.unwrap_or("application/octet-stream");
            BlobResourceContents::new(&*file.uri, BASE64_STANDARD.encode(bytes))
                .mime_type(media_type)
                .into()
        }
    };
    contents.into()
}
