//! Private keys that sign tokens.

use std::{fmt, io, sync::Arc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use ring::{
    rand::SystemRandom,
    signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RsaKeyPair},
};
use serde::Serialize;
use serde_json::{Map, Value};

use super::{SignatureAlgorithm, encode, jwk::thumbprint};
use crate::Secret;

/// A private key and its algorithm. Cheap to clone; never printed.
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
pub struct SigningKey(Arc<SigningKeyParts>);

struct SigningKeyParts {
    algorithm: SignatureAlgorithm,
    pair: PrivateKeyPair,
    /// The private key (base64 of PKCS#8), for storage.
    private: Secret,
    public: Map<String, Value>,
}

enum PrivateKeyPair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
}

/// Reason why a text is not a signing key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSigningKey {
    /// Not the PEM of an unencrypted PKCS#8 key.
    #[error(
        "expected a PEM that begins with `-----BEGIN PRIVATE KEY-----` (PKCS#8, not encrypted)"
    )]
    Pem,
    /// The key is damaged, or its type does not fit the algorithm.
    #[error("the key cannot be used with {algorithm}: {reason}")]
    Rejected {
        /// The algorithm.
        algorithm: SignatureAlgorithm,
        /// The reason.
        reason: String,
    },
    /// Not the output of [`SigningKey::to_secret`].
    #[error("the stored key is invalid")]
    Secret,
}

/// Reason why signing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SigningError {
    /// The claims cannot be serialized as JSON.
    #[error("the claims cannot be serialized")]
    Claims(#[from] serde_json::Error),
    /// The operating system could not provide randomness.
    #[error("no randomness is available for signing")]
    Randomness,
}

impl SigningKey {
    /// Generates a key for [`SignatureAlgorithm::Es256`].
    ///
    /// Fails if the operating system cannot provide randomness.
    pub fn generate() -> io::Result<Self> {
        let scheme = &signature::ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::generate_pkcs8(scheme, &SystemRandom::new())
            .map_err(|_| io::Error::other("no randomness is available for a key"))?;
        Self::from_pkcs8(key.as_ref(), SignatureAlgorithm::Es256).map_err(io::Error::other)
    }

    /// Reads a PEM file: PKCS#8, not encrypted.
    ///
    /// RSA keys must have at least 2048 bits.
    pub fn from_pem(pem: &str, algorithm: SignatureAlgorithm) -> Result<Self, InvalidSigningKey> {
        let (_, rest) = pem
            .split_once("-----BEGIN PRIVATE KEY-----")
            .ok_or(InvalidSigningKey::Pem)?;
        let (body, _) = rest
            .split_once("-----END PRIVATE KEY-----")
            .ok_or(InvalidSigningKey::Pem)?;
        let body: String = body.split_ascii_whitespace().collect();
        let key = STANDARD.decode(body).map_err(|_| InvalidSigningKey::Pem)?;
        Self::from_pkcs8(&key, algorithm)
    }

    /// Reads the output of [`to_secret`](Self::to_secret).
    pub fn from_secret(secret: &Secret) -> Result<Self, InvalidSigningKey> {
        let (algorithm, key) = secret
            .expose()
            .split_once(' ')
            .ok_or(InvalidSigningKey::Secret)?;
        let algorithm = algorithm.parse().map_err(|_| InvalidSigningKey::Secret)?;
        let key = STANDARD
            .decode(key)
            .map_err(|_| InvalidSigningKey::Secret)?;
        Self::from_pkcs8(&key, algorithm)
    }

    fn from_pkcs8(key: &[u8], algorithm: SignatureAlgorithm) -> Result<Self, InvalidSigningKey> {
        let pair = PrivateKeyPair::from_pkcs8(key, algorithm).map_err(|error| {
            InvalidSigningKey::Rejected {
                algorithm,
                reason: error.to_string(),
            }
        })?;
        Ok(Self(Arc::new(SigningKeyParts {
            algorithm,
            public: pair.public_jwk(),
            pair,
            private: Secret::new(STANDARD.encode(key)),
        })))
    }

    /// Returns the key as one line of text, to be stored where only its owner can read it.
    pub fn to_secret(&self) -> Secret {
        Secret::new(format!("{} {}", self.0.algorithm, self.0.private.expose()))
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm
    }

    /// Returns the public key as a JWK with only the required members.
    pub fn public_jwk(&self) -> Map<String, Value> {
        self.0.public.clone()
    }

    /// Returns the thumbprint of the public key (RFC 7638).
    pub fn thumbprint(&self) -> String {
        thumbprint(&self.0.public).expect("the JWK was written here")
    }

    /// Signs claims; sets `alg` in the header.
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
            PrivateKeyPair::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                let padding =
                    rsa_padding(self.0.algorithm).expect("an RSA key has an RSA algorithm");
                pair.sign(padding, &random, message, &mut signature)
                    .map(|()| signature)
            }
            PrivateKeyPair::Ecdsa(pair) => {
                pair.sign(&random, message).map(|it| it.as_ref().to_vec())
            }
            PrivateKeyPair::Ed25519(pair) => Ok(pair.sign(message).as_ref().to_vec()),
        };
        signature.map_err(|_| SigningError::Randomness)
    }
}

impl PrivateKeyPair {
    fn from_pkcs8(
        key: &[u8],
        algorithm: SignatureAlgorithm,
    ) -> Result<Self, ring::error::KeyRejected> {
        let ecdsa = |scheme| EcdsaKeyPair::from_pkcs8(scheme, key, &SystemRandom::new());
        match algorithm {
            SignatureAlgorithm::Es256 => {
                ecdsa(&signature::ECDSA_P256_SHA256_FIXED_SIGNING).map(PrivateKeyPair::Ecdsa)
            }
            SignatureAlgorithm::Es384 => {
                ecdsa(&signature::ECDSA_P384_SHA384_FIXED_SIGNING).map(PrivateKeyPair::Ecdsa)
            }
            // OpenSSL writes these keys without the public key.
            SignatureAlgorithm::EdDsa => {
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(key).map(PrivateKeyPair::Ed25519)
            }
            _ => RsaKeyPair::from_pkcs8(key).map(|pair| PrivateKeyPair::Rsa(Box::new(pair))),
        }
    }

    fn public_jwk(&self) -> Map<String, Value> {
        match self {
            PrivateKeyPair::Rsa(pair) => {
                let public = signature::RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
                let (n, e) = (encode(public.n), encode(public.e));
                members([("kty", "RSA"), ("n", &n), ("e", &e)])
            }
            PrivateKeyPair::Ecdsa(pair) => {
                // Uncompressed point: 0x04, then both coordinates.
                let point = &pair.public_key().as_ref()[1..];
                let (x, y) = point.split_at(point.len() / 2);
                let crv = if x.len() == 32 { "P-256" } else { "P-384" };
                let (x, y) = (encode(x), encode(y));
                members([("kty", "EC"), ("crv", crv), ("x", &x), ("y", &y)])
            }
            PrivateKeyPair::Ed25519(pair) => {
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

fn rsa_padding(algorithm: SignatureAlgorithm) -> Option<&'static dyn signature::RsaEncoding> {
    Some(match algorithm {
        SignatureAlgorithm::Rs256 => &signature::RSA_PKCS1_SHA256,
        SignatureAlgorithm::Rs384 => &signature::RSA_PKCS1_SHA384,
        SignatureAlgorithm::Rs512 => &signature::RSA_PKCS1_SHA512,
        SignatureAlgorithm::Ps256 => &signature::RSA_PSS_SHA256,
        SignatureAlgorithm::Ps384 => &signature::RSA_PSS_SHA384,
        SignatureAlgorithm::Ps512 => &signature::RSA_PSS_SHA512,
        SignatureAlgorithm::Es256 | SignatureAlgorithm::Es384 | SignatureAlgorithm::EdDsa => {
            return None;
        }
    })
}

/// Shows only the algorithm.
impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.0.algorithm)
    }
}
