//! Lists of requests.

use turnbuckle_protocol::RequestId;

use super::{DecodeError, Decoder, Encoder};

pub(crate) fn encode_requests(requests: &[RequestId]) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.number(requests.len() as u64);
    for request in requests {
        encoder.text(&request.raw());
    }
    encoder.finish()
}

pub(crate) fn decode_requests(bytes: &[u8]) -> Result<Vec<RequestId>, DecodeError> {
    Decoder::new(bytes)?.list(read_request)
}

pub(super) fn read_request(decoder: &mut Decoder<'_>) -> Result<RequestId, DecodeError> {
    RequestId::from_json(decoder.text()?).map_err(|_| DecodeError)
}
