//! Registered items and their visibility.

mod capabilities;
mod extensions;
mod invalid_settings;
mod list_digests;
mod mounting;
mod shared_state;
mod visibility;
