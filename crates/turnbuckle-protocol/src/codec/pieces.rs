//! Small messages that come in pieces, written as one.
//!
//! An HTTP library hands over a head, the size of a chunk, the data and a line end, each for itself. To name four pieces to
//! the kernel costs more than to copy a few hundred bytes, and a socket takes a single piece by a shorter way.

use std::io::IoSlice;

/// How many bytes are worth copying.
pub const SMALL: usize = 1024;

/// Returns the pieces as one, in `room` if they have to be copied; `None` if they do not fit in there.
pub fn joined<'a>(pieces: &'a [IoSlice<'_>], room: &'a mut [u8; SMALL]) -> Option<&'a [u8]> {
    if let [only] = pieces {
        return Some(only);
    }
    let mut length = 0;
    for piece in pieces {
        let end = length + piece.len();
        room.get_mut(length..end)?.copy_from_slice(piece);
        length = end;
    }
    Some(&room[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(pieces: &[&[u8]]) -> Option<Vec<u8>> {
        let pieces: Vec<_> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        joined(&pieces, &mut [b'?'; SMALL]).map(<[u8]>::to_vec)
    }

    #[test]
    fn pieces_come_one_after_the_other() {
        assert_eq!(
            join(&[b"4\r\n", b"", b"data", b"\r\n"]).unwrap(),
            b"4\r\ndata\r\n"
        );
        assert_eq!(join(&[]).unwrap(), b"");
    }

    #[test]
    fn only_what_has_to_be_copied_must_be_small() {
        let (full, large) = (vec![b'a'; SMALL], vec![b'a'; SMALL + 1]);

        assert_eq!(join(&[&full[..1], &full[1..]]).unwrap(), full);
        assert_eq!(join(&[&large]).unwrap(), large);
        assert!(join(&[&large[..1], &large[1..]]).is_none());
    }
}
