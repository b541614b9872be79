//! Records of tasks.

use bytes::Bytes;
use turnbuckle_protocol::types::TaskStatus;
use turnbuckle_store::{TaskInputResponse, TaskOutcome, TaskRecord};

use super::{
    DecodeError, Decoder, Encoder,
    message::{read_instance, write_instance},
};

pub(crate) fn encode_task(task: &TaskRecord) -> Vec<u8> {
    let mut encoder = Encoder::new();
    write(&mut encoder, task);
    encoder.finish()
}

pub(crate) fn decode_task(bytes: &[u8]) -> Result<TaskRecord, DecodeError> {
    read(&mut Decoder::new(bytes)?)
}

pub(super) fn write<'a>(encoder: &'a mut Encoder, task: &TaskRecord) -> &'a mut Encoder {
    encoder
        .text(&task.id.to_string())
        .number(task.number)
        .number(task.changes)
        .text(&task.owner)
        .number(status_number(task.status))
        .optional(task.message.as_deref())
        .time(task.created)
        .time(task.updated)
        .duration(task.ttl)
        .duration(task.poll_interval)
        .flag(task.runner.is_some());
    if let Some(runner) = &task.runner {
        write_instance(encoder, runner);
    }
    encoder.number(task.input_requests.len() as u64);
    for (key, request) in &task.input_requests {
        encoder.text(key).bytes(request);
    }
    encoder.number(task.input_responses.len() as u64);
    for (key, response) in &task.input_responses {
        let (is_error, bytes) = match response {
            TaskInputResponse::Result(bytes) => (false, bytes),
            TaskInputResponse::Error(bytes) => (true, bytes),
        };
        encoder.text(key).flag(is_error).bytes(bytes);
    }
    let outcome = task.outcome.as_ref().map(|outcome| match outcome {
        TaskOutcome::Result(bytes) => (1, bytes),
        TaskOutcome::Error(bytes) => (2, bytes),
    });
    match outcome {
        Some((kind, bytes)) => encoder.number(kind).bytes(bytes),
        None => encoder.number(0),
    }
}

pub(super) fn read(decoder: &mut Decoder<'_>) -> Result<TaskRecord, DecodeError> {
    let bytes = |decoder: &mut Decoder<'_>| decoder.bytes().map(Bytes::copy_from_slice);
    Ok(TaskRecord {
        id: decoder.parsed()?,
        number: decoder.number()?,
        changes: decoder.number()?,
        owner: decoder.text()?.into(),
        status: status(decoder.number()?)?,
        message: decoder.optional()?.map(str::to_owned),
        created: decoder.time()?,
        updated: decoder.time()?,
        ttl: decoder.duration()?,
        poll_interval: decoder.duration()?,
        runner: if decoder.flag()? {
            Some(read_instance(decoder)?)
        } else {
            None
        },
        input_requests: decoder
            .list(|decoder| Ok((decoder.text()?.to_owned(), bytes(decoder)?)))?,
        input_responses: decoder.list(|decoder| {
            let (key, is_error) = (decoder.text()?.to_owned(), decoder.flag()?);
            let response = if is_error {
                TaskInputResponse::Error(bytes(decoder)?)
            } else {
                TaskInputResponse::Result(bytes(decoder)?)
            };
            Ok((key, response))
        })?,
        outcome: match decoder.number()? {
            0 => None,
            1 => Some(TaskOutcome::Result(bytes(decoder)?)),
            2 => Some(TaskOutcome::Error(bytes(decoder)?)),
            _ => return Err(DecodeError),
        },
    })
}

const STATUSES: [TaskStatus; 5] = [
    TaskStatus::Working,
    TaskStatus::InputRequired,
    TaskStatus::Completed,
    TaskStatus::Failed,
    TaskStatus::Cancelled,
];

fn status_number(status: TaskStatus) -> u64 {
    let index = STATUSES.iter().position(|known| *known == status);
    index.unwrap_or_default() as u64
}

fn status(number: u64) -> Result<TaskStatus, DecodeError> {
    let index = usize::try_from(number).map_err(|_| DecodeError)?;
    STATUSES.get(index).copied().ok_or(DecodeError)
}
