//! A response as it goes on the wire.

use bytes::Bytes;

/// A complete JSON-RPC response.
#[derive(Debug)]
pub(crate) enum Written {
    /// In one piece.
    Whole(Vec<u8>),
    /// Around something long that other answers have in them too, and that is not copied for each.
    Around(Box<Around>),
}

/// What stands before and after what is shared.
#[derive(Debug)]
pub(crate) struct Around {
    pub(crate) before: Vec<u8>,
    pub(crate) shared: Bytes,
    pub(crate) after: Vec<u8>,
}

impl Written {
    /// What follows on each other.
    pub(crate) fn pieces(&self) -> [&[u8]; 3] {
        match self {
            Self::Whole(all) => [all, b"", b""],
            Self::Around(around) => [&around.before, &around.shared, &around.after],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.pieces().iter().map(|piece| piece.len()).sum()
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            Self::Whole(all) => all.into(),
            Self::Around(_) => self.pieces().concat().into(),
        }
    }
}

impl From<Vec<u8>> for Written {
    fn from(all: Vec<u8>) -> Self {
        Self::Whole(all)
    }
}
