//! Conformance tests for implementations of the store traits.
//!
//! A store passes if none of these functions panics. Each takes a closure that creates an empty store with the given
//! limits. Time passes by sleeping: a store that uses the clock of tokio is tested immediately under paused time, any
//! other one in a minute.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod bus;
mod claims;
mod concurrency;
mod control;
mod events;
mod instances;
mod request_states;
mod sessions;
mod tasks;

use std::time::Duration;

pub use bus::bus;
pub use claims::claims;
pub use concurrency::concurrency;
pub use control::control;
pub use events::{event_totals, events};
pub use instances::instances;
pub use request_states::request_states;
pub use sessions::sessions;
pub use tasks::tasks;

/// The unit of time of the tests, long enough to be measurable for a database.
const TICK: Duration = Duration::from_millis(300);

async fn ticks(count: u32) {
    tokio::time::sleep(TICK * count).await;
}
