//! How a token may be signed.

use std::{fmt, str::FromStr};

/// A signature by a private key, as JWTs name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Algorithm {
    /// RSA with PKCS#1 v1.5 and SHA-256.
    Rs256,
    /// RSA with PKCS#1 v1.5 and SHA-384.
    Rs384,
    /// RSA with PKCS#1 v1.5 and SHA-512.
    Rs512,
    /// RSA with PSS and SHA-256.
    Ps256,
    /// RSA with PSS and SHA-384.
    Ps384,
    /// RSA with PSS and SHA-512.
    Ps512,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// ECDSA on P-384 with SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

/// A name that is no [`Algorithm`]: `none`, one with a shared secret, or one that nobody here knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no algorithm of signatures that is accepted", .0.escape_default())]
pub struct UnknownAlgorithm(pub String);

impl Algorithm {
    /// Every algorithm there is.
    pub const ALL: [Algorithm; 9] = [
        Algorithm::Rs256,
        Algorithm::Rs384,
        Algorithm::Rs512,
        Algorithm::Ps256,
        Algorithm::Ps384,
        Algorithm::Ps512,
        Algorithm::Es256,
        Algorithm::Es384,
        Algorithm::EdDsa,
    ];

    /// Returns its name, as in the `alg` of a header.
    pub fn as_str(self) -> &'static str {
        match self {
            Algorithm::Rs256 => "RS256",
            Algorithm::Rs384 => "RS384",
            Algorithm::Rs512 => "RS512",
            Algorithm::Ps256 => "PS256",
            Algorithm::Ps384 => "PS384",
            Algorithm::Ps512 => "PS512",
            Algorithm::Es256 => "ES256",
            Algorithm::Es384 => "ES384",
            Algorithm::EdDsa => "EdDSA",
        }
    }
}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let mut all = Self::ALL.into_iter();
        all.find(|algorithm| algorithm.as_str() == name)
            .ok_or_else(|| UnknownAlgorithm(name.chars().take(32).collect()))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_as_it_is_written() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.to_string().parse(), Ok(algorithm));
        }
    }

    #[test]
    fn what_needs_no_private_key_is_no_algorithm() {
        for name in [
            "none", "None", "NONE", "", "HS256", "HS384", "HS512", "rs256", "RS256 ", "A128KW",
        ] {
            assert_eq!(
                name.parse::<Algorithm>(),
                Err(UnknownAlgorithm(name.into()))
            );
        }
    }
}
