//! How much the answers to one array may hold before they are sent.
//!
//! An array of a few bytes can ask for a hundred large answers, and nothing of them is sent before the last is there.

use turnbuckle_protocol::{RequestId, RpcError};

use crate::exchange::Answer;

/// Bytes that the answers to one array may have together.
const MOST: usize = 4 * 1024 * 1024;

/// Says whether there is no room for an answer of so many bytes beside those that are held already. A lone one is as large as it is.
pub(crate) fn is_too_much(held: usize, answer: usize) -> bool {
    held > 0 && held + answer > MOST
}

/// What is said in place of an answer that there is no room for.
pub(crate) fn too_much(id: &RequestId) -> Answer {
    let error = RpcError::internal(format!(
        "the answers to one array may have {MOST} bytes together, and this one would make it more: ask on its own"
    ));
    Answer::error(Some(id), &error, 200)
}
