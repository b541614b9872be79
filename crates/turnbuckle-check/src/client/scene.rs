//! The ways in which a server behaves that is played for a client.

mod asking;
mod chatty;
mod cut;
pub(crate) mod guarded;
mod old;
mod strange;

use turnbuckle_protocol::revision::Revision;

use super::cue::Reply;
use super::part::{Heard, Page, Part};
use super::target::Carrier;
use crate::tape::Head;

pub(crate) use self::asking::{FORM, MODEL, PING, ROOTS, TOOLS, UNDECLARED, UNKNOWN, VISIT};
pub(crate) use self::chatty::UNHEARD_OF;
pub(crate) use self::cut::PAUSE;

/// A way in which a server behaves; a client is run once for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scene {
    /// It does nothing special.
    Plain,
    /// It tells about logs and progress before it answers; on HTTP every answer is a stream.
    Chatty,
    /// Its lists have pages.
    Paged,
    /// It has tools and nothing else.
    Bare,
    /// It asks the client while it answers.
    Asking,
    /// It speaks only a revision that nobody knows.
    Strange,
    /// It answers in batches.
    Batched,
    /// It forgets the session once.
    Forgetful,
    /// A stream of it breaks off once, before the answer.
    Cut,
    /// It speaks HTTP+SSE and nothing newer.
    OldHttp,
    /// It wants a token.
    Guarded,
    /// It knows only the handshake, and says so with the code that everybody expects.
    OnlyHandshake,
    /// The same, with a code that nobody expects.
    OnlyHandshakeOddly,
}

impl Scene {
    /// All of them, in the order in which they are played.
    pub(crate) const ALL: [Self; 13] = [
        Self::Plain,
        Self::Chatty,
        Self::Paged,
        Self::Bare,
        Self::Asking,
        Self::Strange,
        Self::Batched,
        Self::Forgetful,
        Self::Cut,
        Self::OldHttp,
        Self::Guarded,
        Self::OnlyHandshake,
        Self::OnlyHandshakeOddly,
    ];

    /// Says whether there is such a thing in a revision, on what carries messages.
    pub(crate) fn is_played(self, revision: Revision, carrier: Carrier) -> bool {
        let streamable = carrier == Carrier::Http && revision >= Revision::V2025_03_26;
        match self {
            Self::Plain
            | Self::Chatty
            | Self::Paged
            | Self::Bare
            | Self::Asking
            | Self::Strange => true,
            Self::Batched => revision == Revision::V2025_03_26,
            Self::Forgetful => streamable && revision < Revision::MODERN,
            Self::Cut | Self::OldHttp | Self::Guarded => streamable,
            Self::OnlyHandshake | Self::OnlyHandshakeOddly => revision >= Revision::MODERN,
        }
    }

    /// Returns the revision that the played server speaks to a client that is checked in one.
    pub(crate) fn speaks(self, revision: Revision) -> Revision {
        match self {
            Self::OldHttp => Revision::V2024_11_05,
            Self::OnlyHandshake | Self::OnlyHandshakeOddly => Revision::LATEST_LEGACY,
            _ => revision,
        }
    }

    /// Returns what is special about the answer to a request, if anything.
    pub(crate) fn reply(self, part: &Part, heard: &Heard<'_>) -> Option<Reply> {
        match self {
            Self::Plain | Self::Paged | Self::Bare | Self::OldHttp => None,
            Self::Chatty => chatty::reply(part, heard),
            Self::Asking => asking::reply(part, heard),
            Self::Strange => strange::reply(part, heard),
            Self::Batched => chatty::batch(part, heard),
            Self::Forgetful => cut::forget(heard),
            Self::Cut => cut::reply(part, heard),
            Self::Guarded => guarded::refuse(part, heard.head),
            Self::OnlyHandshake => old::reply(heard, -32601),
            Self::OnlyHandshakeOddly => old::reply(heard, -32000),
        }
    }

    /// Returns what is special about what needs no answer, if anything.
    pub(crate) fn accepted(self, part: &Part, head: &Head) -> Option<Reply> {
        match self {
            Self::Guarded => guarded::refuse(part, Some(head)),
            _ => None,
        }
    }

    /// Returns what is special about another request of HTTP, if anything.
    pub(crate) fn page(self, part: &Part, page: &Page<'_>) -> Option<Reply> {
        match self {
            Self::Cut => cut::page(part, page),
            Self::Guarded => guarded::page(part, page),
            _ => None,
        }
    }
}
