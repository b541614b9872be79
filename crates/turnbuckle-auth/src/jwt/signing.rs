//! Keys that sign.

use std::{fmt, io, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{Algorithm, encode, thumbprint::thumbprint};
use crate::Secret;

/// A private key, and how it signs. Cheap to clone; never printed.
///
/// ```
/// use turnbuckle_auth::jwt::SigningKey;
///
/// let key = SigningKey::generate()?;
/// let token = key.sign(Default::default(), &serde_json::json!({ "sub": "me" }))?;
///
/// assert_eq!(token.split('.').count(), 3);
/// assert_eq!(key.public_jwk()["crv"], "P-256");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SigningKey(Arc<Parts>);

struct Parts {
    algorithm: Algorithm,
    pair: Pair,
    /// The private key itself (PKCS#8, in base64), to be kept somewhere.
    private: Secret,
    public: Map<String, Value>,
}

enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Why a text is no key to sign with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKey {
    /// No PEM of an unencrypted PKCS#8 key.
    #[error(
        "expected a PEM that begins with `-----BEGIN PRIVATE KEY-----` (PKCS#8, not encrypted)"
    )]
    Pem,
    /// The key is broken, or of another kind than the algorithm needs.
    #[error("the key cannot sign by {algorithm}: {reason}")]
    Rejected {
        /// The algorithm.
        algorithm: Algorithm,
        /// What is wrong with the key.
        reason: String,
    },
    /// Not what [`SigningKey::to_secret`] gave.
    #[error("the key that was kept cannot be read")]
    Kept,
}

/// Why nothing was signed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// The claims cannot be written as JSON.
    #[error("the claims cannot be written")]
    Claims(#[from] serde_json::Error),
    /// The operating system had no randomness to give.
    #[error("there is no randomness to sign with")]
    Randomness,
}

impl SigningKey {
    /// Makes a new key, for [`Algorithm::Es256`].
    ///
    /// Fails where the operating system has no randomness to give.
    pub fn generate() -> io::Result<Self> {
        let scheme = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(scheme, &SystemRandom::new())
            .map_err(|_| io::Error::other("no randomness to make a key of"))?;
        Self::from_pkcs8(key.as_ref(), Algorithm::Es256).map_err(io::Error::other)
    }

    /// Reads a key from a PEM file: PKCS#8, not encrypted.
    ///
    /// RSA keys have at least 2048 bits.
    pub fn from_pem(pem: &str, algorithm: Algorithm) -> Result<Self, InvalidKey> {
        let (_, rest) = pem
            .split_once("-----BEGIN PRIVATE KEY-----")
            .ok_or(InvalidKey::Pem)?;
        let (body, _) = rest
            .split_once("-----END PRIVATE KEY-----")
            .ok_or(InvalidKey::Pem)?;
        let body: String = body.split_ascii_whitespace().collect();
        let key = STANDARD.decode(body).map_err(|_| InvalidKey::Pem)?;
        Self::from_pkcs8(&key, algorithm)
    }

    /// Reads what [`to_secret`](Self::to_secret) gave.
    pub fn from_secret(kept: &Secret) -> Result<Self, InvalidKey> {
        let (algorithm, key) = kept.expose().split_once(' ').ok_or(InvalidKey::Kept)?;
        let algorithm = algorithm.parse().map_err(|_| InvalidKey::Kept)?;
        let key = STANDARD.decode(key).map_err(|_| InvalidKey::Kept)?;
        Self::from_pkcs8(&key, algorithm)
    }

    fn from_pkcs8(key: &[u8], algorithm: Algorithm) -> Result<Self, InvalidKey> {
        let pair = Pair::from_pkcs8(key, algorithm).map_err(|error| InvalidKey::Rejected {
            algorithm,
            reason: error.to_string(),
        })?;
        Ok(Self(Arc::new(Parts {
            algorithm,
            public: pair.public_jwk(),
            pair,
            private: Secret::new(STANDARD.encode(key)),
        })))
    }

    /// Returns the key as one line of text, to be kept where only its owner can read.
    pub fn to_secret(&self) -> Secret {
        Secret::new(format!("{} {}", self.0.algorithm, self.0.private.expose()))
    }

    /// Returns how it signs.
    pub fn algorithm(&self) -> Algorithm {
        self.0.algorithm
    }

    /// Returns the public key, as a JWK with nothing in it but the key.
    pub fn public_jwk(&self) -> Map<String, Value> {
        self.0.public.clone()
    }

    /// Returns the hash that names the public key (RFC 7638).
    pub fn thumbprint(&self) -> String {
        thumbprint(&self.0.public).expect("the JWK is one of ours")
    }

    /// Signs claims; `alg` is added to the header, whatever it was.
    pub fn sign(
        &self,
        mut header: Map<String, Value>,
        claims: &impl Serialize,
    ) -> Result<String, SigningError> {
        header.insert("alg".to_owned(), self.0.algorithm.as_str().into());
        let header = encode(serde_json::to_vec(&header)?);
        let signed = format!("{header}.{}", encode(serde_json::to_vec(claims)?));
        let signature = self.signature(signed.as_bytes())?;
        Ok(format!("{signed}.{}", encode(signature)))
    }

    fn signature(&self, message: &[u8]) -> Result<Vec<u8>, SigningError> {
        let random = SystemRandom::new();
        let signature = match &self.0.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding = rsa_padding(self.0.algorithm).expect("an RSA key signs by RSA");
                pair.sign(padding, &random, message, &mut signature)
                    .map(|()| signature)
            }
            Pair::Ecdsa(pair) => pair.sign(&random, message).map(|it| it.as_ref().to_vec()),
            Pair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        };
        signature.map_err(|_| SigningError::Randomness)
    }
}

impl Pair {
    fn from_pkcs8(key: &[u8], algorithm: Algorithm) -> Result<Self, ring::error::KeyRejected> {
        let ecdsa = |scheme| EcdsaKeyPair::from_pkcs8(scheme, key, &SystemRandom::new());
        match algorithm {
            Algorithm::Es256 => ecdsa(&signature::ECDSA_P256_SHA256_FIXED_SIGNING).map(Pair::Ecdsa),
            Algorithm::Es384 => ecdsa(&signature::ECDSA_P384_SHA384_FIXED_SIGNING).map(Pair::Ecdsa),
            // OpenSSL writes these keys without their public half.
            Algorithm::EdDsa => Ed25519KeyPair::from_pkcs8_maybe_unchecked(key).map(Pair::Ed25519),
            _ => RsaKeyPair::from_pkcs8(key).map(|pair| Pair::Rsa(Box::new(pair))),
        }
    }

    fn public_jwk(&self) -> Map<String, Value> {
        match self {
            Pair::Rsa(pair) => {
                let public = signature::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (encode(public.n), encode(public.e));
                members([("kty", "RSA"), ("n", &n), ("e", &e)])
            }
            Pair::Ecdsa(pair) => {
                // A point in its long form: 0x04, then both coordinates.
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let crv = if x.len() == 32 { "P-256" } else { "P-384" };
                let (x, y) = (encode(x), encode(y));
                members([("kty", "EC"), ("crv", crv), ("x", &x), ("y", &y)])
            }
            Pair::Ed25519(pair) => {
                let x = encode(pair.public_key());
                members([("kty", "OKP"), ("crv", "Ed25519"), ("x", &x)])
            }
        }
    }
}

fn members<const N: usize>(members: [(&str, &str); N]) -> Map<String, Value> {
    let members = members.into_iter();
    members
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect()
}

fn rsa_padding(algorithm: Algorithm) -> Option<&'static dyn signature::RsaEncoding> {
    Some(match algorithm {
        Algorithm::Rs256 => &signature::RSA_PKCS1_SHA256,
        Algorithm::Rs384 => &signature::RSA_PKCS1_SHA384,
        Algorithm::Rs512 => &signature::RSA_PKCS1_SHA512,
        Algorithm::Ps256 => &signature::RSA_PSS_SHA256,
        Algorithm::Ps384 => &signature::RSA_PSS_SHA384,
        Algorithm::Ps512 => &signature::RSA_PSS_SHA512,
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
    })
}

/// Shows how it signs, and nothing of the key.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.0.algorithm)
    }
}
