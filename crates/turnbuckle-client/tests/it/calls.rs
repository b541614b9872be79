//! Calls and subscriptions, on any transport.

mod both_eras;
mod cache;
mod dropped_clients;
mod list_limits;
mod malformed_objects;
mod observers;
#[cfg(feature = "validation")]
mod output_validation;
mod progress;
mod recorder;
mod round_trips;
mod scripted_tasks;
#[cfg(feature = "skills")]
mod skills;
mod subscription_end;
mod subscriptions;
mod tasks;
mod timeouts;
mod tool_changes;
mod tools;
mod without_validation;
