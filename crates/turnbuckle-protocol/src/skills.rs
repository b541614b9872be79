//! What servers and clients both have to know about the files of a skill: what its head says, and the hash of its bytes.

mod frontmatter;
mod yaml;

pub use frontmatter::{Frontmatter, FrontmatterError};

use sha2::{Digest, Sha256};

/// Returns the hash of bytes as it goes on the wire: `sha256:` and 64 lower-case hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a string takes all");
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
