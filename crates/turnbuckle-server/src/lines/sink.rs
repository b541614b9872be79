//! What goes out on one connection: whole lines, in the order they were put in.
//!
//! Everyone appends; one writer at a time takes all there is and writes it at once. Knows neither sockets nor threads:
//! a writer that waits is a waker.

use std::{
    future::poll_fn,
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

/// Bytes that may wait unwritten before nothing more is read, unless the sink is made for fewer.
const HIGH_WATER: usize = 1024 * 1024;
/// How much memory an idle buffer keeps.
const KEPT: usize = 64 * 1024;

/// The outgoing lines of one connection.
pub(crate) struct Sink {
    state: Mutex<State>,
    high_water: usize,
    /// Whether more than `high_water` waits; for who looks after every line.
    is_full: AtomicBool,
    has_ended: AtomicBool,
}

#[derive(Default)]
struct State {
    queued: Vec<u8>,
    /// Somebody is writing what was taken last.
    writing: bool,
    /// Nothing is added any more.
    ended: bool,
    failure: Option<io::Error>,
    writer: Option<Waker>,
    /// Those who wait until enough was written.
    waiting: Vec<Waker>,
}

impl Default for Sink {
    fn default() -> Self {
        Self::holding(HIGH_WATER)
    }
}

impl Sink {
    /// A sink that is full when more than this many bytes wait.
    pub(crate) fn holding(high_water: usize) -> Self {
        Self {
            state: Mutex::default(),
            high_water,
            is_full: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Adds a line, in pieces, without telling the writer: [`wake`](Self::wake) does, once for many.
    pub(crate) fn append(&self, message: &[&[u8]]) {
        let mut state = self.lock();
        if !state.ended {
            push_line(&mut state.queued, message);
            if state.queued.len() > self.high_water {
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Adds a line and tells the writer.
    pub(crate) fn push(&self, message: &[u8]) {
        self.append(&[message]);
        self.wake();
    }

    /// Tells the writer that there is something to write.
    pub(crate) fn wake(&self) {
        let writer = self.lock().writer.take();
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Says whether the peer has to read before more is added.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Waits until the peer has read enough, or will read nothing more.
    pub(crate) async fn room(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if state.queued.len() <= self.high_water || state.ended {
                return Poll::Ready(());
            }
            if !state
                .waiting
                .iter()
                .any(|waker| waker.will_wake(cx.waker()))
            {
                state.waiting.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    /// Takes everything there is to write, and leaves `spare` in its place; nothing once all is written.
    ///
    /// Until [`written`](Self::written) is called nobody else gets anything, so that lines never mix.
    pub(crate) async fn take(&self, mut spare: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        poll_fn(|cx| self.poll_take(cx, &mut spare)).await
    }

    /// [`take`](Self::take), for who is polled.
    pub(crate) fn poll_take(
        &self,
        cx: &mut Context<'_>,
        spare: &mut Vec<u8>,
    ) -> Poll<io::Result<Option<Vec<u8>>>> {
        let mut state = self.lock();
        if let Some(failure) = state.failure.take() {
            return Poll::Ready(Err(failure));
        }
        if state.writing || (state.queued.is_empty() && !state.ended) {
            match &mut state.writer {
                Some(writer) => writer.clone_from(cx.waker()),
                none => *none = Some(cx.waker().clone()),
            }
            return Poll::Pending;
        }
        if state.queued.is_empty() {
            return Poll::Ready(Ok(None));
        }
        let batch = state.hand_out(std::mem::take(spare));
        self.is_full.store(false, Ordering::Relaxed);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(Some(batch)))
    }

    /// Takes what there is if it is at most `most` bytes and nobody is writing.
    pub(crate) fn take_now(&self, most: usize) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let fits = (1..=most).contains(&state.queued.len());
        (fits && !state.writing).then(|| state.hand_out(Vec::new()))
    }

    /// Leaves to the writer what was taken last, except for what is `written` of it.
    pub(crate) fn put_back(&self, mut buffer: Vec<u8>, written: usize) {
        let mut state = self.lock();
        state.writing = false;
        buffer.drain(..written);
        buffer.append(&mut state.queued);
        state.queued = buffer;
        drop(state);
        self.wake();
    }

    /// Says how writing went what was taken last, and gives the buffer back.
    pub(crate) fn written(&self, mut buffer: Vec<u8>, outcome: io::Result<()>) -> Vec<u8> {
        buffer.clear();
        buffer.shrink_to(KEPT);
        let mut state = self.lock();
        state.writing = false;
        if let Err(error) = outcome {
            state.failure = Some(error);
        }
        if state.queued.capacity() == 0 {
            std::mem::swap(&mut state.queued, &mut buffer);
        }
        let needs_writer = !state.queued.is_empty() || state.ended || state.failure.is_some();
        drop(state);
        if needs_writer {
            self.wake();
        }
        buffer
    }

    /// Lets the writer end once all is written. What is added from now on is dropped.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        self.has_ended.store(true, Ordering::Relaxed);
        self.is_full.store(false, Ordering::Relaxed);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        self.wake();
    }

    /// Says whether nothing is added any more.
    pub(crate) fn is_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while the lock is held leaves whole lines behind.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn hand_out(&mut self, spare: Vec<u8>) -> Vec<u8> {
        self.writing = true;
        std::mem::replace(&mut self.queued, spare)
    }
}

/// Appends a message as one line. Line ends inside can only stand between tokens: handlers may return JSON that
/// someone else laid out for reading.
fn push_line(out: &mut Vec<u8>, message: &[&[u8]]) {
    let start = out.len();
    out.reserve(message.iter().map(|piece| piece.len()).sum::<usize>() + 1);
    message
        .iter()
        .for_each(|piece| out.extend_from_slice(piece));
    let mut from = start;
    while let Some(found) = memchr::memchr(b'\n', &out[from..]) {
        out[from + found] = b' ';
        from += found + 1;
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
