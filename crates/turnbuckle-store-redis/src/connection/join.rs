//! Several commands at once.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::Poll,
};

/// Polls all futures and returns their results in order. Commands share a connection, so they are sent together.
pub(crate) async fn join_all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = futures.iter().map(|_| None).collect();
    let all = poll_fn(|cx| {
        let mut is_ready = true;
        for (future, result) in futures.iter_mut().zip(&mut results) {
            if result.is_some() {
                continue;
            }
            match future.as_mut().poll(cx) {
                Poll::Ready(ready) => *result = Some(ready),
                Poll::Pending => is_ready = false,
            }
        }
        if is_ready {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    pin!(all).await;
    results.into_iter().flatten().collect()
}
