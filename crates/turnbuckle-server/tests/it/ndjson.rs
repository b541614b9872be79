//! Byte streams: one JSON message per line.

mod both_eras;
mod change_notifications;
mod client_requests;
mod hostile_input;
mod message_formats;
mod pagination;
mod round_trips;
mod running_calls;
mod shutdown;
mod stdio_process;
pub(crate) mod test_client;
