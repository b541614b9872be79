//! Entries of the bus.

use std::sync::Arc;

use turnbuckle_store::{ChangeTarget, ServerChange, TargetedChange};

use super::{DecodeError, Decoder, Encoder};

/// An entry of the bus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BusEntry {
    Change(ServerChange),
    /// Changes were lost before they reached Redis.
    Missed,
    /// A kind that this version does not know.
    Unknown,
}

const MISSED: u64 = 0;
const TOOLS: u64 = 1;
const PROMPTS: u64 = 2;
const RESOURCES: u64 = 3;
const RESOURCE: u64 = 4;
const TASK: u64 = 5;
const ELICITATION: u64 = 6;
const TARGETED: u64 = 7;

const EVERYONE: u64 = 0;
const SESSION: u64 = 1;
const PRINCIPAL: u64 = 2;
const SESSIONLESS: u64 = 3;

/// Encodes an entry. Returns `None` for a change that this version cannot encode.
pub(crate) fn encode_change(entry: &BusEntry) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new();
    match entry {
        BusEntry::Change(change) => write(&mut encoder, change)?,
        BusEntry::Missed => {
            encoder.number(MISSED);
        }
        BusEntry::Unknown => return None,
    }
    Some(encoder.finish())
}

fn write(encoder: &mut Encoder, change: &ServerChange) -> Option<()> {
    match change {
        ServerChange::ToolsChanged => encoder.number(TOOLS),
        ServerChange::PromptsChanged => encoder.number(PROMPTS),
        ServerChange::ResourcesChanged => encoder.number(RESOURCES),
        ServerChange::ResourceUpdated { uri } => encoder.number(RESOURCE).text(uri),
        ServerChange::Task { task } => {
            encoder.number(TASK);
            super::task::write(encoder, task)
        }
        ServerChange::ElicitationCompleted { id } => encoder.number(ELICITATION).text(id),
        ServerChange::Targeted(targeted) => {
            encoder.number(TARGETED);
            write_target(encoder, &targeted.target)?;
            write(encoder, &targeted.change)?;
            encoder
        }
        _ => return None,
    };
    Some(())
}

fn write_target(encoder: &mut Encoder, target: &ChangeTarget) -> Option<()> {
    match target {
        ChangeTarget::Everyone => encoder.number(EVERYONE),
        ChangeTarget::Session(session) => encoder.number(SESSION).number(*session),
        ChangeTarget::Principal(principal) => {
            encoder.number(PRINCIPAL).optional(principal.as_deref())
        }
        ChangeTarget::Sessionless(principal) => {
            encoder.number(SESSIONLESS).optional(principal.as_deref())
        }
        _ => return None,
    };
    Some(())
}

/// Decodes an entry.
pub(crate) fn decode_change(bytes: &[u8]) -> Result<BusEntry, DecodeError> {
    read(&mut Decoder::new(bytes)?)
}

fn read(decoder: &mut Decoder<'_>) -> Result<BusEntry, DecodeError> {
    let change = match decoder.number()? {
        MISSED => return Ok(BusEntry::Missed),
        TOOLS => ServerChange::ToolsChanged,
        PROMPTS => ServerChange::PromptsChanged,
        RESOURCES => ServerChange::ResourcesChanged,
        RESOURCE => ServerChange::ResourceUpdated {
            uri: decoder.text()?.into(),
        },
        TASK => ServerChange::Task {
            task: Arc::new(super::task::read(decoder)?),
        },
        ELICITATION => ServerChange::ElicitationCompleted {
            id: decoder.text()?.into(),
        },
        TARGETED => {
            let Some(target) = read_target(decoder)? else {
                return Ok(BusEntry::Unknown);
            };
            match read(decoder)? {
                BusEntry::Change(change) => {
                    ServerChange::Targeted(Arc::new(TargetedChange { target, change }))
                }
                other => return Ok(other),
            }
        }
        _ => return Ok(BusEntry::Unknown),
    };
    Ok(BusEntry::Change(change))
}

fn read_target(decoder: &mut Decoder<'_>) -> Result<Option<ChangeTarget>, DecodeError> {
    let target = match decoder.number()? {
        EVERYONE => ChangeTarget::Everyone,
        SESSION => ChangeTarget::Session(decoder.number()?),
        PRINCIPAL => ChangeTarget::Principal(decoder.optional()?.map(Into::into)),
        SESSIONLESS => ChangeTarget::Sessionless(decoder.optional()?.map(Into::into)),
        _ => return Ok(None),
    };
    Ok(Some(target))
}

/// Returns whether a change is about a whole list, so that one of two equal changes is enough.
pub(crate) fn is_list_change(change: &ServerChange) -> bool {
    match change {
        ServerChange::ToolsChanged
        | ServerChange::PromptsChanged
        | ServerChange::ResourcesChanged => true,
        ServerChange::Targeted(targeted) => is_list_change(&targeted.change),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_change_is_decoded_as_it_was() {
        let targeted = |target| {
            ServerChange::Targeted(Arc::new(TargetedChange {
                target,
                change: ServerChange::PromptsChanged,
            }))
        };
        for change in [
            ServerChange::ToolsChanged,
            ServerChange::PromptsChanged,
            ServerChange::ResourcesChanged,
            ServerChange::ResourceUpdated {
                uri: "file:///a".into(),
            },
            ServerChange::ElicitationCompleted { id: "e".into() },
            targeted(ChangeTarget::Everyone),
            targeted(ChangeTarget::Session(u64::MAX)),
            targeted(ChangeTarget::Principal(Some("ann".into()))),
            targeted(ChangeTarget::Sessionless(None)),
        ] {
            let entry = BusEntry::Change(change);
            let encoded = encode_change(&entry).unwrap();
            assert_eq!(decode_change(&encoded), Ok(entry));
        }
    }

    #[test]
    fn an_unknown_kind_of_change_is_no_error() {
        let mut encoder = Encoder::new();
        encoder.number(1_000).text("of a later version");
        assert_eq!(decode_change(&encoder.finish()), Ok(BusEntry::Unknown));
        let mut encoder = Encoder::new();
        encoder.number(TARGETED).number(1_000);
        assert_eq!(decode_change(&encoder.finish()), Ok(BusEntry::Unknown));
    }
}
