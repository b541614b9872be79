//! Messages between instances.

use bytes::Bytes;
use turnbuckle_store::{EventId, InstanceId, InstanceMessage, InstanceSlot, SessionId, StreamId};

use super::{DecodeError, Decoder, Encoder};

/// An entry of the inbox of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InboxEntry {
    /// The number of the receiver, which tells whether it is still the one that has the slot.
    pub(crate) receiver: InstanceId,
    /// Random; a message that was stored twice has the same number.
    pub(crate) number: u64,
    pub(crate) message: InstanceMessage,
}

const CLIENT_MESSAGE: u64 = 0;
const ATTACH: u64 = 1;
const EVENTS: u64 = 2;
const DETACH: u64 = 3;

/// Encodes a message with its random number. Returns `None` for a message that this version cannot encode.
pub(crate) fn encode_inbox_entry(number: u64, message: &InstanceMessage) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new();
    encoder.number(number);
    match message {
        InstanceMessage::ClientMessage { session, message } => encoder
            .number(CLIENT_MESSAGE)
            .text(&session.to_string())
            .bytes(message),
        InstanceMessage::Attach {
            session,
            last,
            reader,
        } => {
            encoder.number(ATTACH).text(&session.to_string());
            encoder.number(last.stream.number()).number(last.sequence);
            write_instance(&mut encoder, reader)
        }
        InstanceMessage::Events {
            session,
            stream,
            first,
            events,
            end,
        } => {
            encoder.number(EVENTS).text(&session.to_string());
            encoder.number(stream.number()).number(*first);
            encoder.number(events.len() as u64);
            for event in events {
                encoder.bytes(event);
            }
            encoder.flag(*end)
        }
        InstanceMessage::Detach {
            session,
            stream,
            reader,
        } => {
            encoder.number(DETACH).text(&session.to_string());
            encoder.number(stream.number());
            write_instance(&mut encoder, reader)
        }
        _ => return None,
    };
    Some(encoder.finish())
}

/// Decodes a message to `receiver`. Returns `None` for a kind that this version does not know.
pub(crate) fn decode_inbox_entry(
    receiver: InstanceId,
    bytes: &[u8],
) -> Result<Option<InboxEntry>, DecodeError> {
    let decoder = &mut Decoder::new(bytes)?;
    let (number, kind) = (decoder.number()?, decoder.number()?);
    if kind > DETACH {
        return Ok(None);
    }
    let session: SessionId = decoder.parsed()?;
    let message = match kind {
        CLIENT_MESSAGE => InstanceMessage::ClientMessage {
            session,
            message: Bytes::copy_from_slice(decoder.bytes()?),
        },
        ATTACH => InstanceMessage::Attach {
            session,
            last: EventId {
                stream: StreamId::new(decoder.number()?),
                sequence: decoder.number()?,
            },
            reader: read_instance(decoder)?,
        },
        EVENTS => InstanceMessage::Events {
            session,
            stream: StreamId::new(decoder.number()?),
            first: decoder.number()?,
            events: decoder.list(|decoder| decoder.bytes().map(Bytes::copy_from_slice))?,
            end: decoder.flag()?,
        },
        _ => InstanceMessage::Detach {
            session,
            stream: StreamId::new(decoder.number()?),
            reader: read_instance(decoder)?,
        },
    };
    Ok(Some(InboxEntry {
        receiver,
        number,
        message,
    }))
}

pub(crate) fn write_instance<'a>(
    encoder: &'a mut Encoder,
    instance: &InstanceId,
) -> &'a mut Encoder {
    encoder
        .number(instance.slot.number().into())
        .number(instance.nonce)
}

pub(crate) fn read_instance(decoder: &mut Decoder<'_>) -> Result<InstanceId, DecodeError> {
    let slot = u16::try_from(decoder.number()?).ok();
    Ok(InstanceId {
        slot: slot.and_then(InstanceSlot::new).ok_or(DecodeError)?,
        nonce: decoder.number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_message_is_decoded_as_it_was() {
        let session = SessionId::generate().unwrap();
        let stream = StreamId::new(u64::MAX);
        let reader = InstanceId {
            slot: InstanceSlot::new(4_095).unwrap(),
            nonce: 7,
        };
        for message in [
            InstanceMessage::ClientMessage {
                session,
                message: "{}".into(),
            },
            InstanceMessage::Attach {
                session,
                last: EventId {
                    stream,
                    sequence: 3,
                },
                reader,
            },
            InstanceMessage::Events {
                session,
                stream,
                first: 9,
                events: vec!["a".into(), Bytes::new()],
                end: true,
            },
            InstanceMessage::Detach {
                session,
                stream,
                reader,
            },
        ] {
            let encoded = encode_inbox_entry(5, &message).unwrap();
            let decoded = decode_inbox_entry(reader, &encoded).unwrap().unwrap();
            assert_eq!((decoded.number, decoded.message), (5, message));
        }
    }

    #[test]
    fn an_unknown_kind_of_message_is_no_error() {
        let mut encoder = Encoder::new();
        encoder.number(5).number(1_000);
        let decoded = decode_inbox_entry(InstanceId::default(), &encoder.finish());
        assert_eq!(decoded, Ok(None));
    }
}
