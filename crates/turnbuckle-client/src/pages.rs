//! Lists that come in pages, read as if they were one.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;

use crate::call::Boxed;
use crate::error::CallError;

/// One page: its entries, and where the next one begins.
pub(crate) type Page<T> = (Vec<T>, Option<String>);

/// The entries of a list, fetched page by page as they are asked for.
///
/// A [`Stream`]; without the traits of streams at hand, [`next`](Self::next) and [`all`](Self::all) do.
#[must_use = "nothing is fetched before it is asked for"]
pub struct Pages<T> {
    method: &'static str,
    fetch: Fetch<T>,
    fetching: Option<Fetching<T>>,
    ready: VecDeque<T>,
    next: Next,
    seen: Cursors,
    entries: usize,
    max_entries: usize,
    max_pages: usize,
}

/// Fetches the page that a cursor names.
type Fetch<T> = Box<dyn Fn(Option<String>) -> Fetching<T> + Send + Sync>;
type Fetching<T> = Boxed<Result<Page<T>, CallError>>;

enum Next {
    Page(Option<String>),
    End,
}

/// The cursors that came, by their hashes: one may be as long as a message, and there may be many.
#[derive(Default)]
pub(crate) struct Cursors {
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl Cursors {
    /// Says whether a cursor is new, and remembers it.
    pub(crate) fn insert(&mut self, cursor: &str) -> bool {
        self.seen.insert(self.hasher.hash_one(cursor))
    }

    pub(crate) fn len(&self) -> usize {
        self.seen.len()
    }
}

impl<T> Pages<T> {
    pub(crate) fn new(
        method: &'static str,
        (max_entries, max_pages): (usize, usize),
        fetch: impl Fn(Option<String>) -> Fetching<T> + Send + Sync + 'static,
    ) -> Self {
        Self {
            method,
            fetch: Box::new(fetch),
            fetching: None,
            ready: VecDeque::new(),
            next: Next::Page(None),
            seen: Cursors::default(),
            entries: 0,
            max_entries,
            max_pages,
        }
    }

    /// Returns the next entry.
    pub async fn next(&mut self) -> Option<Result<T, CallError>>
    where
        T: Unpin,
    {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Returns all entries, or the error that the list ended with.
    pub async fn all(mut self) -> Result<Vec<T>, CallError>
    where
        T: Unpin,
    {
        let mut all = Vec::new();
        while let Some(entry) = self.next().await {
            all.push(entry?);
        }
        Ok(all)
    }

    fn turn(&mut self, (entries, cursor): Page<T>) -> Result<(), CallError> {
        self.entries = self.entries.saturating_add(entries.len());
        if self.entries > self.max_entries {
            return Err(self.endless(format!("more than {} entries", self.max_entries)));
        }
        self.ready = entries.into();
        self.next = Next::End;
        if let Some(cursor) = cursor {
            if self.seen.len() >= self.max_pages {
                return Err(self.endless(format!("more than {} pages", self.max_pages)));
            }
            if !self.seen.insert(&cursor) {
                return Err(self.endless("a cursor came twice".to_owned()));
            }
            self.next = Next::Page(Some(cursor));
        }
        Ok(())
    }

    fn endless(&mut self, reason: String) -> CallError {
        self.ready.clear();
        self.next = Next::End;
        CallError::EndlessList {
            method: self.method,
            reason,
        }
    }
}

impl<T: Unpin> Stream for Pages<T> {
    type Item = Result<T, CallError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(entry) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(entry)));
            }
            if self.fetching.is_none() {
                let Next::Page(cursor) = std::mem::replace(&mut self.next, Next::End) else {
                    return Poll::Ready(None);
                };
                self.fetching = Some((self.fetch)(cursor));
            }
            let Some(fetching) = &mut self.fetching else {
                return Poll::Ready(None);
            };
            let page = ready!(fetching.as_mut().poll(cx));
            self.fetching = None;
            if let Err(error) = page.and_then(|page| self.turn(page)) {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl<T> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
