//! Records of sessions.

use turnbuckle_protocol::{
    Principal, Revision,
    types::{ClientCapabilities, Implementation, LogLevel},
};
use turnbuckle_store::{
    ClientProfile, Position, SessionOwner, SessionRecord, StreamTurn, StreamTurns,
};

use super::{DecodeError, Decoder, Encoder};

/// Encodes a record.
pub(crate) fn encode_session(record: &SessionRecord) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder
        .text(record.owner.key())
        .flag(record.owner.is_shared())
        .text(record.revision.as_str())
        .json(&record.client.info)
        .json(&record.client.capabilities)
        .flag(record.principal.is_some());
    if let Some(principal) = &record.principal {
        encoder.json(principal);
    }
    encoder.flag(record.initialized);
    encoder.number(u64::from(record.version));
    encoder.flag(record.log_level.is_some());
    if let Some(level) = &record.log_level {
        encoder.json(level);
    }
    encoder.number(record.subscriptions.len() as u64);
    for uri in &record.subscriptions {
        encoder.text(uri);
    }
    let turns = record.stream_turns.turns();
    encoder.number(u64::from(record.stream_turns.newest_generation()));
    encoder.number(turns.len() as u64);
    for turn in turns {
        encoder
            .number(u64::from(turn.generation))
            .number(turn.after.number())
            .number(turn.sender);
    }
    encoder.finish()
}

pub(crate) fn decode_session(bytes: &[u8]) -> Result<SessionRecord, DecodeError> {
    let decoder = &mut Decoder::new(bytes)?;
    let (key, is_shared) = (decoder.text()?, decoder.flag()?);
    let owner = if is_shared {
        SessionOwner::shared(key)
    } else {
        SessionOwner::caller(key)
    };
    let revision: Revision = decoder.parsed()?;
    let info: Option<Implementation> = decoder.json()?;
    let capabilities: ClientCapabilities = decoder.json()?;
    let has_principal = decoder.flag()?;
    let principal = has_principal.then(|| decoder.json::<Principal>());
    let principal = principal.transpose()?;
    let profile = ClientProfile { info, capabilities };
    let mut record = SessionRecord::new(principal, revision, profile).owned_by(owner);
    record.initialized = decoder.flag()?;
    record.version = decoder.small_number()?;
    if decoder.flag()? {
        record.log_level = Some(decoder.json::<LogLevel>()?);
    }
    let subscriptions = decoder.list(|decoder| decoder.text().map(str::to_owned))?;
    record.subscriptions = subscriptions.into_iter().collect();
    let newest_generation = decoder.small_number()?;
    let turns = decoder.list(|decoder| {
        Ok(StreamTurn {
            generation: decoder.small_number()?,
            after: Position::new(decoder.number()?),
            sender: decoder.number()?,
        })
    })?;
    record.stream_turns = StreamTurns::new(newest_generation, turns);
    Ok(record)
}
