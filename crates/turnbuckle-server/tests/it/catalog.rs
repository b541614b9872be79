//! What a server has registered, and who sees it.

mod capabilities;
mod extensions;
mod invalid_settings;
mod mounting;
mod shared_state;
mod visibility;
