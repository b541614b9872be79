//! Vector arithmetic and storage format.

/// Maximum dimensions; four times those of the largest models.
const MAX_DIMENSIONS: usize = 16_384;

/// Normalizes a vector to length 1. Returns `None` if it is empty, zero or not finite.
pub(super) fn unit(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let square: f64 = vector.iter().map(|part| f64::from(*part).powi(2)).sum();
    let length = square.sqrt();
    if vector.len() > MAX_DIMENSIONS || !length.is_finite() || length < 1e-12 {
        return None;
    }
    for part in &mut vector {
        *part = (f64::from(*part) / length) as f32;
    }
    Some(vector)
}

/// Encodes a vector as little-endian 32-bit floats.
pub(super) fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// Returns the cosine similarity of a vector and a stored one, both of length 1, or `None` if their dimensions differ.
pub(super) fn cosine(vector: &[f32], kept: &[u8]) -> Option<f32> {
    let (numbers, rest) = kept.as_chunks::<4>();
    if numbers.len() != vector.len() || !rest.is_empty() {
        return None;
    }
    let products = vector.iter().zip(numbers);
    let sum: f32 = products
        .map(|(one, other)| one * f32::from_le_bytes(*other))
        .sum();
    sum.is_finite().then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_gets_the_length_1() {
        assert_eq!(unit(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        for bad in [
            vec![],
            vec![0.0, 0.0],
            vec![f32::NAN],
            vec![f32::INFINITY],
            vec![1.0; MAX_DIMENSIONS + 1],
        ] {
            assert_eq!(unit(bad), None);
        }
    }

    #[test]
    fn what_was_kept_is_compared() {
        let kept = to_bytes(&[0.6, 0.8]);
        assert!((cosine(&[0.6, 0.8], &kept).unwrap() - 1.0).abs() < 1e-6);
        assert!((cosine(&[-0.8, 0.6], &kept).unwrap()).abs() < 1e-6);
        assert_eq!(cosine(&[1.0], &kept), None);
        assert_eq!(cosine(&[0.6, 0.8], &kept[..7]), None);
    }
}
