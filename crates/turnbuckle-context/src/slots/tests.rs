use std::{
    pin::{Pin, pin},
    task::{Context, Poll, Waker},
};

use super::*;

fn owner(name: &str) -> Owner {
    Owner::for_user(name)
}

type Acquiring<'a> = Pin<Box<dyn Future<Output = Result<WorkSlot, ContextError>> + 'a>>;

/// Begins to wait, and says whether there was a place at once.
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
    begin(slots, owner).1.expect("a place is free")
}

#[test]
fn one_call_of_another_owner_comes_before_the_rest_of_a_long_queue() {
    let (ada, bob, eve) = (owner("ada"), owner("bob"), owner("eve"));
    let slots = WorkSlots::new(1, 1, 100);
    let running = take(&slots, &eve);
    let mut many: Vec<_> = (0..50).map(|_| begin(&slots, &eve).0).collect();
    let (mut of_ada, _) = begin(&slots, &ada);
    let (mut of_bob, _) = begin(&slots, &bob);
    drop(running);
    // Eve asked first, so hers is first, and then everyone has a turn.
    drop(poll(&mut many[0]).expect("the first of eve"));
    drop(poll(&mut of_ada).expect("ada"));
    drop(poll(&mut of_bob).expect("bob"));
    assert!(poll(&mut many[1]).is_some());
}

#[test]
fn no_owner_has_all_places() {
    let (ada, eve) = (owner("ada"), owner("eve"));
    let slots = WorkSlots::new(4, 3, 100);
    let _running: Vec<_> = (0..3).map(|_| take(&slots, &eve)).collect();
    let (mut fourth, none) = begin(&slots, &eve);
    assert!(none.is_none());
    drop(take(&slots, &ada));
    assert!(poll(&mut fourth).is_none(), "it is kept for others");
}

#[test]
fn a_call_that_is_given_up_takes_no_place() {
    let (ada, bob) = (owner("ada"), owner("bob"));
    let slots = WorkSlots::new(1, 1, 100);
    let running = take(&slots, &ada);
    let (waiting, _) = begin(&slots, &bob);
    let (given, _) = begin(&slots, &ada);
    drop(waiting);
    drop(running);
    // It was given the place, and never looked.
    drop(given);
    drop(take(&slots, &bob));
    assert!(slots.lock().waiting.is_empty() && slots.lock().busy.is_empty());
}

#[test]
fn too_many_waiting_calls_of_one_owner_are_refused() {
    let (ada, eve) = (owner("ada"), owner("eve"));
    let slots = WorkSlots::new(1, 1, 2);
    let _running = take(&slots, &eve);
    let _waiting: Vec<_> = (0..2).map(|_| begin(&slots, &eve).0).collect();
    let refused = pin!(slots.acquire(&eve)).poll(&mut Context::from_waker(Waker::noop()));
    let Poll::Ready(Err(error)) = refused else {
        panic!("one more waits");
    };
    assert!(error.to_string().contains("too many of your calls"));
    assert!(begin(&slots, &ada).1.is_none(), "others may wait");
}
