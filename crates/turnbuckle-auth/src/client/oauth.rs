//! The client that remembers: it gets tokens, keeps them fresh, and asks for more when more is needed.
