//! Joins small buffers for one write.
//!
//! An HTTP library passes a head, a chunk size, the data and a line end as separate buffers. A vectored write of four
//! buffers costs more than copying a few hundred bytes, and the kernel handles a single buffer on a faster path.

use std::io::IoSlice;

/// The maximum number of bytes to copy.
pub const MAX_JOINED_BYTES: usize = 1024;

/// Returns the pieces as one slice, copied to `buffer` if there are several; `None` if they do not fit.
pub fn join_small<'a>(
    pieces: &'a [IoSlice<'_>],
    buffer: &'a mut [u8; MAX_JOINED_BYTES],
) -> Option<&'a [u8]> {
    if let [only] = pieces {
        return Some(only);
    }
    let mut length = 0;
    for piece in pieces {
        let end = length + piece.len();
        buffer.get_mut(length..end)?.copy_from_slice(piece);
        length = end;
    }
    Some(&buffer[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(pieces: &[&[u8]]) -> Option<Vec<u8>> {
        let pieces: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        join_small(&pieces, &mut [b'?'; MAX_JOINED_BYTES]).map(<[u8]>::to_vec)
    }

    #[test]
    fn pieces_are_joined_in_order() {
        assert_eq!(
            join(&[b"4\r\n", b"", b"data", b"\r\n"]).unwrap(),
            b"4\r\ndata\r\n"
        );
        assert_eq!(join(&[]).unwrap(), b"");
    }

    #[test]
    fn a_single_piece_may_be_large() {
        let (full, large) = (
            vec![b'a'; MAX_JOINED_BYTES],
            vec![b'a'; MAX_JOINED_BYTES + 1],
        );

        assert_eq!(join(&[&full[..1], &full[1..]]).unwrap(), full);
        assert_eq!(join(&[&large]).unwrap(), large);
        assert!(join(&[&large[..1], &large[1..]]).is_none());
    }
}
