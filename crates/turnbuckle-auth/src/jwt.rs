//! Signed tokens: keys, signatures, and what a token may look like.
