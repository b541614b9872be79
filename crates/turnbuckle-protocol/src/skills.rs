//! Front matter and file digests of skills, for servers and clients.

mod frontmatter;
mod yaml;

pub use frontmatter::{Frontmatter, FrontmatterError};
use sha2::{Digest, Sha256};

/// Returns the digest of bytes in wire format: `sha256:` and 64 lower-case hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_names_its_algorithm() {
        assert_eq!(
            digest(b""),
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
    }
}
