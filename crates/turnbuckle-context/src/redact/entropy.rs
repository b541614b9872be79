//! How little a text repeats itself: what is drawn by chance has more of it than what somebody thought of.

/// Bits per byte, by how often each byte occurs in the text itself (Shannon).
pub(super) fn entropy(text: &str) -> f32 {
    let mut counts = [0_u32; 256];
    for byte in text.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let total = text.len() as f32;
    let of = |count: &u32| {
        let share = *count as f32 / total;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_has_more_than_words() {
        assert_eq!(entropy(""), 0.0);
        assert_eq!(entropy("aaaa"), 0.0);
        assert!((entropy("abcd") - 2.0).abs() < 1e-6);
        assert!(entropy("a8Zk2Qp9Lx0Vt7Rm") > entropy("passwordpassword"));
    }
}
