//! A callback that panics fails its own question, not the client.

use std::{
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    task::Poll,
};

use turnbuckle_protocol::RpcError;

use super::BoxFuture;

/// Runs a callback to its end; a panic is an internal error.
pub(super) async fn run<T>(begin: impl FnOnce() -> BoxFuture<T>) -> Result<T, RpcError> {
    // Whatever a panic leaves half done is dropped with the future; nothing of ours is inside.
    let begun = catch_unwind(AssertUnwindSafe(begin));
    let mut running = begun.map_err(|_| panicked())?;
    poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| running.as_mut().poll(cx)));
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(answer)) => Poll::Ready(Ok(answer)),
            Err(_) => Poll::Ready(Err(panicked())),
        }
    })
    .await
}

/// Tells a listener; if it panics, it has not heard.
pub(crate) fn tell(listener: impl FnOnce()) {
    if catch_unwind(AssertUnwindSafe(listener)).is_err() {
        tracing::error!("a listener panicked");
    }
}

fn panicked() -> RpcError {
    tracing::error!("a callback panicked");
    RpcError::internal("the client failed to answer")
}
