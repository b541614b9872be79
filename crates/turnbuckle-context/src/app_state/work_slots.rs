//! Slots for blocking work, shared fairly between owners.
//!
//! A single queue would favor the owner with the most calls. Here each owner has a queue, and the queues are served round-robin.
//! With several owners, none ever occupies all slots.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
};

use tokio::sync::oneshot;

use crate::{ContextError, Owner, storage::lock};

/// Slots for blocking work. Clones share the slots.
#[derive(Clone, Debug)]
pub(crate) struct WorkSlots(Arc<SlotPool>);

#[derive(Debug)]
struct SlotPool {
    max_per_owner: usize,
    max_waiting: usize,
    state: Mutex<SlotState>,
}

#[derive(Debug)]
struct SlotState {
    free: usize,
    /// Number of occupied slots per owner.
    busy: HashMap<Owner, usize>,
    /// Waiting calls by owner, in round-robin order. Queues are never empty.
    waiting: VecDeque<(Owner, VecDeque<SlotWaiter>)>,
    /// The id of the next waiter.
    next_id: u64,
}

#[derive(Debug)]
struct SlotWaiter {
    id: u64,
    ready: oneshot::Sender<()>,
}

/// An occupied slot, released on drop.
#[derive(Debug)]
pub(crate) struct WorkSlot {
    slots: WorkSlots,
    owner: Owner,
}

impl WorkSlots {
    /// Creates `count` slots. One owner may occupy `max_per_owner` of them, and `max_waiting` further calls may wait.
    pub(crate) fn new(count: usize, max_per_owner: usize, max_waiting: usize) -> Self {
        Self(Arc::new(SlotPool {
            max_per_owner: max_per_owner.max(1),
            max_waiting,
            state: Mutex::new(SlotState {
                free: count,
                busy: HashMap::new(),
                waiting: VecDeque::new(),
                next_id: 0,
            }),
        }))
    }

    /// Waits for a slot. Fails if too many calls of this owner are waiting.
    pub(crate) async fn acquire(&self, owner: &Owner) -> Result<WorkSlot, ContextError> {
        let (ready, mut is_ready) = oneshot::channel();
        let id = {
            let mut state = self.lock();
            state.next_id += 1;
            let id = state.next_id;
            let queue = state.queue(owner);
            if queue.len() >= self.0.max_waiting {
                return Err(ContextError::invalid(
                    "too many of your calls are waiting; wait for some of their results",
                ));
            }
            queue.push_back(SlotWaiter { id, ready });
            state.serve(self.0.max_per_owner);
            id
        };
        let mut waiting = WaitGuard {
            slots: self,
            owner,
            id: Some(id),
        };
        // Await by reference: the guard needs the receiver to find out whether a slot was assigned.
        let _ = (&mut is_ready).await;
        waiting.id = None;
        Ok(WorkSlot {
            slots: self.clone(),
            owner: owner.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        lock(&self.0.state)
    }

    fn release(&self, owner: &Owner) {
        let mut state = self.lock();
        state.release(owner);
        state.serve(self.0.max_per_owner);
    }
}

impl Drop for WorkSlot {
    fn drop(&mut self) {
        self.slots.release(&self.owner);
    }
}

/// A waiting call. If dropped, it leaves its queue or releases the slot that was just assigned.
struct WaitGuard<'a> {
    slots: &'a WorkSlots,
    owner: &'a Owner,
    id: Option<u64>,
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        if !self.slots.lock().remove_waiter(self.owner, id) {
            self.slots.release(self.owner);
        }
    }
}

impl SlotState {
    /// Returns the queue of an owner; a new queue is served last.
    fn queue(&mut self, owner: &Owner) -> &mut VecDeque<SlotWaiter> {
        let known = self.waiting.iter().position(|(one, _)| one == owner);
        let at = known.unwrap_or_else(|| {
            self.waiting.push_back((owner.clone(), VecDeque::new()));
            self.waiting.len() - 1
        });
        &mut self.waiting[at].1
    }

    /// Assigns free slots to waiting calls.
    fn serve(&mut self, max_per_owner: usize) {
        while self.free > 0 {
            let may = |owner: &Owner| self.busy.get(owner).copied().unwrap_or(0) < max_per_owner;
            let Some(next) = self.waiting.iter().position(|(owner, _)| may(owner)) else {
                return;
            };
            let Some((owner, mut queue)) = self.waiting.remove(next) else {
                return;
            };
            let waiter = queue.pop_front();
            if !queue.is_empty() {
                self.waiting.push_back((owner.clone(), queue));
            }
            if waiter.is_some_and(|waiter| waiter.ready.send(()).is_ok()) {
                self.free -= 1;
                *self.busy.entry(owner).or_default() += 1;
            }
        }
    }

    fn release(&mut self, owner: &Owner) {
        self.free += 1;
        if let Some(count) = self.busy.get_mut(owner) {
            *count -= 1;
            if *count == 0 {
                self.busy.remove(owner);
            }
        }
    }

    /// Removes a call from its queue. Returns `false` if it already has a slot.
    fn remove_waiter(&mut self, owner: &Owner, id: u64) -> bool {
        let Some(at) = self.waiting.iter().position(|(one, _)| one == owner) else {
            return false;
        };
        let queue = &mut self.waiting[at].1;
        let before = queue.len();
        queue.retain(|waiter| waiter.id != id);
        let was_there = queue.len() < before;
        if queue.is_empty() {
            self.waiting.remove(at);
        }
        was_there
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        task::{Context, Poll, Waker},
    };

    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::for_user(name)
    }

    type Acquiring<'a> = Pin<Box<dyn Future<Output = Result<WorkSlot, ContextError>> + 'a>>;

    /// Starts to wait, and returns the slot if one is free.
    fn begin<'a>(slots: &'a WorkSlots, owner: &'a Owner) -> (Acquiring<'a>, Option<WorkSlot>) {
        let mut acquiring: Acquiring<'a> = Box::pin(slots.acquire(owner));
        let slot = poll(&mut acquiring);
        (acquiring, slot)
    }

    fn poll(acquiring: &mut Acquiring<'_>) -> Option<WorkSlot> {
        match acquiring
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(slot) => Some(slot.unwrap()),
            Poll::Pending => None,
        }
    }

    fn take(slots: &WorkSlots, owner: &Owner) -> WorkSlot {
        begin(slots, owner).1.expect("a slot is free")
    }

    #[test]
    fn calls_of_other_owners_are_served_before_the_rest_of_a_long_queue() {
        let (ada, bob, eve) = (owner("ada"), owner("bob"), owner("eve"));
        let slots = WorkSlots::new(1, 1, 100);
        let running = take(&slots, &eve);
        let mut many: Vec<_> = (0..50).map(|_| begin(&slots, &eve).0).collect();
        let (mut of_ada, _) = begin(&slots, &ada);
        let (mut of_bob, _) = begin(&slots, &bob);
        drop(running);
        // Eve's first call is served first, then one call of each owner.
        drop(poll(&mut many[0]).expect("the first of eve"));
        drop(poll(&mut of_ada).expect("ada"));
        drop(poll(&mut of_bob).expect("bob"));
        assert!(poll(&mut many[1]).is_some());
    }

    #[test]
    fn no_owner_occupies_all_slots() {
        let (ada, eve) = (owner("ada"), owner("eve"));
        let slots = WorkSlots::new(4, 3, 100);
        let _running: Vec<_> = (0..3).map(|_| take(&slots, &eve)).collect();
        let (mut fourth, none) = begin(&slots, &eve);
        assert!(none.is_none());
        drop(take(&slots, &ada));
        assert!(
            poll(&mut fourth).is_none(),
            "the last slot is reserved for others"
        );
    }

    #[test]
    fn a_dropped_call_does_not_occupy_a_slot() {
        let (ada, bob) = (owner("ada"), owner("bob"));
        let slots = WorkSlots::new(1, 1, 100);
        let running = take(&slots, &ada);
        let (waiting, _) = begin(&slots, &bob);
        let (given, _) = begin(&slots, &ada);
        drop(waiting);
        drop(running);
        // The slot was assigned to it, but it was never polled.
        drop(given);
        drop(take(&slots, &bob));
        assert!(slots.lock().waiting.is_empty() && slots.lock().busy.is_empty());
    }

    #[test]
    fn too_many_waiting_calls_of_one_owner_are_rejected() {
        let (ada, eve) = (owner("ada"), owner("eve"));
        let slots = WorkSlots::new(1, 1, 2);
        let _running = take(&slots, &eve);
        let _waiting: Vec<_> = (0..2).map(|_| begin(&slots, &eve).0).collect();
        let rejected = pin!(slots.acquire(&eve)).poll(&mut Context::from_waker(Waker::noop()));
        let Poll::Ready(Err(error)) = rejected else {
            panic!("the call is not rejected");
        };
        assert!(error.to_string().contains("too many of your calls"));
        assert!(begin(&slots, &ada).1.is_none(), "others may wait");
    }
}
