//! What every store must do, as tests.
//!
//! A store passes if none of these functions panics. Each is given a closure that makes an empty
//! store with the limits it is told. Time passes by sleeping, so a store that keeps time by tokio's
//! clock is tested at once under paused time, and any other one in a few seconds.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod bus;
mod events;
mod journals;
mod races;
mod sessions;
mod tasks;

pub use bus::bus;
pub use events::events;
pub use journals::journals;
pub use races::races;
pub use sessions::sessions;
pub use tasks::tasks;

use std::time::Duration;

/// A step of time: long enough to be told apart from none by a database.
const TICK: Duration = Duration::from_millis(100);

async fn ticks(count: u32) {
    tokio::time::sleep(TICK * count).await;
}
