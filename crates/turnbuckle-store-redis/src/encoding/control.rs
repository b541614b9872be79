//! Messages of the control log.

use turnbuckle_store::ControlMessage;

use super::{DecodeError, Decoder, Encoder, request::read_request};

const SUBSCRIPTIONS_CHANGED: u64 = 0;
const SESSION_CHANGED: u64 = 1;
const SESSION_ENDED: u64 = 2;
const CALL_CANCELLED: u64 = 3;

/// Encodes a message. Returns `None` for one that this version cannot encode.
pub(crate) fn encode_control(message: &ControlMessage) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new();
    let (kind, session) = match message {
        ControlMessage::SubscriptionsChanged { session } => (SUBSCRIPTIONS_CHANGED, session),
        ControlMessage::SessionChanged { session } => (SESSION_CHANGED, session),
        ControlMessage::SessionEnded { session } => (SESSION_ENDED, session),
        ControlMessage::CallCancelled { session, .. } => (CALL_CANCELLED, session),
        _ => return None,
    };
    encoder.number(kind).text(&session.to_string());
    if let ControlMessage::CallCancelled { request, .. } = message {
        encoder.text(&request.raw());
    }
    Some(encoder.finish())
}

/// Decodes a message. Returns `None` for a kind that this version does not know.
pub(crate) fn decode_control(bytes: &[u8]) -> Result<Option<ControlMessage>, DecodeError> {
    let decoder = &mut Decoder::new(bytes)?;
    let kind = decoder.number()?;
    if kind > CALL_CANCELLED {
        return Ok(None);
    }
    let session = decoder.parsed()?;
    Ok(Some(match kind {
        SUBSCRIPTIONS_CHANGED => ControlMessage::SubscriptionsChanged { session },
        SESSION_CHANGED => ControlMessage::SessionChanged { session },
        SESSION_ENDED => ControlMessage::SessionEnded { session },
        _ => ControlMessage::CallCancelled {
            session,
            request: read_request(decoder)?,
        },
    }))
}
