//! What a server has registered, and who sees it.

mod capabilities;
mod extensions;
mod mounting;
mod visibility;
