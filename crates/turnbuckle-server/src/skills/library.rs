//! The skills of a running server: what there is now, and who looks whether that is still true.

use std::{
    string::FromUtf8Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
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
use turnbuckle_store::Bus;

use super::{
    Skill, Skills, address,
    folder::{self, Folder},
    media,
    shelf::{Body, File, Shelf, Volume},
};
use crate::{
    CacheHint, Contents, Context, RequestError, Resource, Server, exchange::BoxFuture,
    source::Source,
};

/// What was looked at this long ago is served without another look.
const FRESH: Duration = Duration::from_secs(1);
/// How often a file is read for one request if it changes each time.
const ATTEMPTS: usize = 3;

/// All skills of a server.
pub(super) struct Library {
    shelf: ArcSwap<Shelf>,
    volumes: Mutex<Volumes>,
    /// Whoever holds this looks; the others wait for what is seen.
    folders: Arc<tokio::sync::Mutex<Vec<Folder>>>,
    has_folders: bool,
    looks: Mutex<Looks>,
    look_every: Duration,
    cache: CacheHint,
    watch: Mutex<Option<JoinHandle<()>>>,
}

/// Which looks there were.
struct Looks {
    begun: u64,
    /// The last one that came to its end, and when it began.
    last: (u64, Instant),
}

/// Which look is good enough.
#[derive(Clone, Copy)]
enum Wanted {
    /// One that began at this time or later.
    Since(Instant),
    /// One with this number or a higher one.
    Number(u64),
}

/// What the shelf is made of.
#[derive(Default)]
struct Volumes {
    given: Vec<Arc<Volume>>,
    found: Vec<Arc<Volume>>,
}

impl Library {
    /// Takes what is given and looks into the folders.
    pub(super) fn open(skills: Skills) -> Self {
        let mut folders: Vec<_> = skills.folders.into_iter().map(Folder::new).collect();
        let now = Instant::now();
        let mut volumes = Volumes::default();
        for skill in skills.skills {
            volumes.give(skill);
        }
        volumes.found = folders.iter_mut().flat_map(Folder::look).collect();
        Self {
            shelf: ArcSwap::from_pointee(volumes.shelf()),
            volumes: Mutex::new(volumes),
            has_folders: !folders.is_empty(),
            folders: Arc::new(tokio::sync::Mutex::new(folders)),
            looks: Mutex::new(Looks {
                begun: 0,
                last: (0, now),
            }),
            look_every: skills.look_every,
            cache: skills.cache,
            watch: Mutex::default(),
        }
    }

    /// What there is now.
    pub(super) fn shelf(&self) -> Arc<Shelf> {
        self.shelf.load_full()
    }

    pub(super) fn add(&self, skill: Skill, server: &Server) {
        self.rearrange(&*server.store_ref().bus, |volumes| volumes.give(skill));
    }

    pub(super) fn remove(&self, uri: &str, server: &Server) -> bool {
        self.rearrange(&*server.store_ref().bus, |volumes| {
            let before = volumes.given.len();
            volumes.given.retain(|volume| volume.manifest() != uri);
            volumes.given.len() < before
        })
    }

    /// Changes what there is, and tells of the difference.
    fn rearrange<T>(&self, bus: &dyn Bus, change: impl FnOnce(&mut Volumes) -> T) -> T {
        let mut volumes = lock(&self.volumes);
        let outcome = change(&mut volumes);
        let shelf = Arc::new(volumes.shelf());
        let before = self.shelf.swap(shelf.clone());
        // Before anyone else changes it, so that news come in the order in which they happen.
        for change in before.changes(&shelf) {
            bus.publish(change);
        }
        outcome
    }

    /// Looks into the folders, unless that was done well enough.
    async fn look(self: &Arc<Self>, wanted: Wanted, bus: &Arc<dyn Bus>) {
        if !self.has_folders || self.has_looked(wanted) {
            return;
        }
        let mut folders = self.folders.clone().lock_owned().await;
        if self.has_looked(wanted) {
            return;
        }
        let (library, bus) = (self.clone(), bus.clone());
        // Goes on if nobody waits any more: the next one finds what it has seen.
        let look = spawn_blocking(move || {
            let look = library.begin();
            let found = folders.iter_mut().flat_map(Folder::look).collect();
            library.rearrange(&*bus, |volumes| volumes.found = found);
            lock(&library.looks).last = look;
        });
        if let Err(error) = look.await {
            tracing::error!(%error, "looking for skills failed");
        }
    }

    fn begin(&self) -> (u64, Instant) {
        let mut looks = lock(&self.looks);
        looks.begun += 1;
        (looks.begun, Instant::now())
    }

    fn has_looked(&self, wanted: Wanted) -> bool {
        let (number, began) = lock(&self.looks).last;
        match wanted {
            Wanted::Since(moment) => began >= moment,
            Wanted::Number(wanted) => number >= wanted,
        }
    }

    /// A look that has not begun yet.
    fn another_look(&self) -> Wanted {
        Wanted::Number(lock(&self.looks).begun + 1)
    }

    /// Looks again, unless that was done a moment ago.
    pub(super) async fn look_lately(self: &Arc<Self>, server: &Server) {
        let now = Instant::now();
        let since = now.checked_sub(FRESH).unwrap_or(now);
        let wanted = Wanted::Since(since);
        self.look(wanted, &server.store_ref().bus).await;
    }

    /// Reads a file such that its bytes are those whose digest is given out.
    async fn contents(
        self: Arc<Self>,
        uri: &str,
        server: &Server,
    ) -> Result<Contents, RequestError> {
        self.look_lately(server).await;
        for _ in 0..ATTEMPTS {
            let file = self.shelf().files.get(uri).cloned();
            let file = file.ok_or_else(RequestError::not_found)?;
            if let Some(bytes) = bytes_of(&file).await? {
                return Ok(contents(&file, bytes));
            }
            let wanted = self.another_look();
            self.look(wanted, &server.store_ref().bus).await;
        }
        Err(RequestError::internal(
            "the file changes faster than it can be read",
        ))
    }

    async fn watch(library: Weak<Self>, bus: Arc<dyn Bus>, period: Duration) {
        loop {
            tokio::time::sleep(period).await;
            let Some(library) = library.upgrade() else {
                return;
            };
            let wanted = library.another_look();
            library.look(wanted, &bus).await;
        }
    }
}

impl Volumes {
    fn give(&mut self, skill: Skill) {
        let volume = Arc::new(skill.into_volume());
        let same = |known: &&mut Arc<Volume>| known.folder == volume.folder;
        match self.given.iter_mut().find(same) {
            Some(known) => *known = volume,
            None => self.given.push(volume),
        }
    }

    fn shelf(&self) -> Shelf {
        Shelf::new(self.given.iter().chain(&self.found))
    }
}

impl Source for Library {
    fn owns(&self, uri: &str) -> bool {
        uri.starts_with(address::SCHEME)
    }

    fn has(&self, uri: &str) -> bool {
        self.shelf.load().has(uri)
    }

    fn listed(&self) -> Arc<Vec<Arc<Resource>>> {
        self.shelf.load().listed.clone()
    }

    fn cache(&self) -> CacheHint {
        self.cache
    }

    fn freshen(self: Arc<Self>, server: Server) -> BoxFuture<()> {
        Box::pin(async move { self.look_lately(&server).await })
    }

    fn read(self: Arc<Self>, uri: &str, cx: Context) -> BoxFuture<Result<Contents, RequestError>> {
        let uri = uri.to_owned();
        Box::pin(async move { self.contents(&uri, cx.server()).await })
    }

    fn attend(self: Arc<Self>, server: &Server) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let mut watch = lock(&self.watch);
        if self.has_folders && watch.as_ref().is_none_or(JoinHandle::is_finished) {
            let bus = server.store_ref().bus.clone();
            let library = Arc::downgrade(&self);
            *watch = Some(runtime.spawn(Self::watch(library, bus, self.look_every)));
        }
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        if let Some(watch) = lock(&self.watch).take() {
            watch.abort();
        }
    }
}

/// Files that are read at one time: each may have 16 MiB, and whoever asks for many must not make us hold them all.
static READS: Semaphore = Semaphore::const_new(8);

/// The bytes of a file, if they are still those that its digest was made of.
async fn bytes_of(file: &File) -> Result<Option<Bytes>, RequestError> {
    let (path, root) = match &file.body {
        Body::Held(bytes) => return Ok(Some(bytes.clone())),
        Body::OnDisk { path, root } => (path.clone(), root.clone()),
    };
    // A permit is never refused: nobody closes the semaphore.
    let _permit = READS.acquire().await;
    let read = spawn_blocking(move || {
        let bytes = folder::read_again(&path, &root)?;
        let digest = digest(&bytes);
        Ok::<_, std::io::Error>((bytes, digest))
    });
    match read.await? {
        Ok((bytes, digest)) if *digest == *file.digest => Ok(Some(bytes.into())),
        // Changed, gone or out of reach: another look says which.
        _ => Ok(None),
    }
}

fn contents(file: &File, bytes: Bytes) -> Contents {
    let is_binary = file.media_type.is_some_and(media::is_binary);
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
