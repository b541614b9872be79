//! The outgoing lines of one connection, in order.
//!
//! Any task appends lines; one writer at a time takes all queued bytes. Independent of sockets and threads: a waiting
//! writer is a waker.

use std::{
    future::poll_fn,
    io,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
};

use crate::sync::lock;

/// Queued bytes above which reading pauses, by default.
const HIGH_WATER: usize = 1024 * 1024;
/// Maximum capacity of an idle buffer.
const MAX_IDLE_BUFFER_BYTES: usize = 64 * 1024;

/// A queue of outgoing lines.
pub(crate) struct WriteQueue {
    state: Mutex<WriteQueueState>,
    high_water: usize,
    /// True if more than `high_water` bytes are queued. Read after every line, so it is atomic.
    is_full: AtomicBool,
    has_ended: AtomicBool,
}

#[derive(Default)]
struct WriteQueueState {
    queued: Vec<u8>,
    /// True while a chunk is being written.
    writing: bool,
    /// True when the queue accepts no more lines.
    ended: bool,
    failure: Option<io::Error>,
    writer: Option<Waker>,
    /// Tasks that wait for room.
    waiting: Vec<Waker>,
}

impl Default for WriteQueue {
    fn default() -> Self {
        Self::with_high_water(HIGH_WATER)
    }
}

impl WriteQueue {
    /// Creates a queue with a limit of queued bytes.
    pub(crate) fn with_high_water(high_water: usize) -> Self {
        Self {
            state: Mutex::default(),
            high_water,
            is_full: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Appends a line, in parts, without waking the writer; call [`wake`](Self::wake) once for many lines.
    pub(crate) fn append(&self, message: &[&[u8]]) {
        let mut state = self.lock();
        if !state.ended {
            push_line(&mut state.queued, message);
            if state.queued.len() > self.high_water {
                self.is_full.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Appends a line and wakes the writer.
    pub(crate) fn push(&self, message: &[u8]) {
        self.append(&[message]);
        self.wake();
    }

    /// Wakes the writer.
    pub(crate) fn wake(&self) {
        let writer = self.lock().writer.take();
        if let Some(writer) = writer {
            writer.wake();
        }
    }

    /// Returns whether the queue is full.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Waits until the queue has room or is ended.
    pub(crate) async fn wait_for_room(&self) {
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

    /// Takes all queued bytes and leaves `spare` as the buffer. Returns `None` at the end.
    ///
    /// No other chunk is returned before [`finish_chunk`](Self::finish_chunk), so that lines do not mix.
    pub(crate) async fn next_chunk(&self, mut spare: Vec<u8>) -> io::Result<Option<Vec<u8>>> {
        poll_fn(|cx| self.poll_chunk(cx, &mut spare)).await
    }

    /// The poll function of [`next_chunk`](Self::next_chunk).
    pub(crate) fn poll_chunk(
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
        let batch = state.take_chunk(std::mem::take(spare));
        self.is_full.store(false, Ordering::Relaxed);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        Poll::Ready(Ok(Some(batch)))
    }

    /// Takes the queued bytes if there are at most `max_bytes` and no other chunk is being written.
    pub(crate) fn try_take(&self, max_bytes: usize) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let fits = (1..=max_bytes).contains(&state.queued.len());
        (fits && !state.writing).then(|| state.take_chunk(Vec::new()))
    }

    /// Returns the unwritten rest of a chunk to the queue.
    pub(crate) fn unread(&self, mut buffer: Vec<u8>, written: usize) {
        let mut state = self.lock();
        state.writing = false;
        buffer.drain(..written);
        buffer.append(&mut state.queued);
        state.queued = buffer;
        drop(state);
        self.wake();
    }

    /// Finishes a chunk with the outcome of writing it, and returns its buffer.
    pub(crate) fn finish_chunk(&self, mut buffer: Vec<u8>, outcome: io::Result<()>) -> Vec<u8> {
        buffer.clear();
        buffer.shrink_to(MAX_IDLE_BUFFER_BYTES);
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

    /// Ends the queue: the writer stops when it is empty, and later lines are dropped.
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

    /// Returns whether the queue is ended.
    pub(crate) fn is_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, WriteQueueState> {
        // A panic cannot leave a partial line.
        lock(&self.state)
    }
}

impl WriteQueueState {
    fn take_chunk(&mut self, spare: Vec<u8>) -> Vec<u8> {
        self.writing = true;
        std::mem::replace(&mut self.queued, spare)
    }
}

/// Appends a message as one line. Line breaks can only occur between JSON tokens, in pretty-printed output of handlers.
fn push_line(out: &mut Vec<u8>, message: &[&[u8]]) {
    let start = out.len();
    out.reserve(message.iter().map(|part| part.len()).sum::<usize>() + 1);
    message.iter().for_each(|part| out.extend_from_slice(part));
    let mut from = start;
    while let Some(found) = memchr::memchr(b'\n', &out[from..]) {
        out[from + found] = b' ';
        from += found + 1;
    }
    out.push(b'\n');
}

#[cfg(test)]
mod tests;
