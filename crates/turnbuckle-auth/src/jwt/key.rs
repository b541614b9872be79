//! Keys that verify (JWK, RFC 7517).

use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::{Map, Value};

use super::{Algorithm, decode, thumbprint::thumbprint};

/// A public key.
#[derive(Clone, Debug)]
pub struct Jwk {
    id: Option<String>,
    /// The only algorithm it is good for, if it says so.
    algorithm: Option<Algorithm>,
    material: Material,
    thumbprint: String,
}

#[derive(Clone, Debug)]
enum Material {
    Rsa { n: Vec<u8>, e: Vec<u8> },
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// Why a JWK does not verify signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJwk {
    /// Of a kind or on a curve that is not supported.
    #[error("the key is of a kind that is not supported")]
    Kind,
    /// A part of it is missing, or not what it should be.
    #[error("the key is not complete")]
    Incomplete,
    /// Fewer than 2048 bits, or more than 8192.
    #[error("an RSA key has 2048 to 8192 bits")]
    Length,
    /// It says that it is for something else.
    #[error("the key is not for signatures")]
    Purpose,
    /// There is a private key in it.
    #[error("the key is not public")]
    Private,
}

impl Jwk {
    /// Reads a public key: RSA, EC on P-256 or P-384, or Ed25519.
    pub fn parse(jwk: &Map<String, Value>) -> Result<Self, InvalidJwk> {
        // `k` is a shared secret, the others are halves of a private key.
        if ["d", "p", "q", "dp", "dq", "qi", "oth", "k"]
            .iter()
            .any(|name| jwk.contains_key(*name))
        {
            return Err(InvalidJwk::Private);
        }
        if !is_for_signatures(jwk) {
            return Err(InvalidJwk::Purpose);
        }
        let material = Material::parse(jwk)?;
        let algorithm = match jwk.get("alg") {
            None => None,
            Some(name) => {
                let algorithm = name.as_str().and_then(|name| name.parse().ok());
                Some(
                    algorithm
                        .filter(|it| material.can(*it))
                        .ok_or(InvalidJwk::Purpose)?,
                )
            }
        };
        Ok(Self {
            id: jwk.get("kid").and_then(Value::as_str).map(str::to_owned),
            algorithm,
            material,
            thumbprint: thumbprint(jwk).ok_or(InvalidJwk::Kind)?,
        })
    }

    /// Returns the name that its issuer gave it (`kid`).
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the hash that names the key (RFC 7638).
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }

    /// Says whether it verifies signatures of this kind.
    pub fn can(&self, algorithm: Algorithm) -> bool {
        self.material.can(algorithm) && self.algorithm.is_none_or(|own| own == algorithm)
    }

    /// Says whether the signature is one of this key; never, if the key [can](Self::can) do no such signatures.
    pub fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        self.can(algorithm) && self.material.verify(algorithm, message, signature)
    }
}

impl Material {
    fn parse(jwk: &Map<String, Value>) -> Result<Self, InvalidJwk> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let part = |name| text(name).and_then(decode).ok_or(InvalidJwk::Incomplete);
        match (text("kty"), text("crv")) {
            (Some("RSA"), _) => rsa(&part("n")?, &part("e")?),
            (Some("EC"), Some("P-256")) => point(32, &part("x")?, &part("y")?).map(Material::P256),
            (Some("EC"), Some("P-384")) => point(48, &part("x")?, &part("y")?).map(Material::P384),
            (Some("OKP"), Some("Ed25519")) => match part("x")? {
                x if x.len() == 32 => Ok(Material::Ed25519(x)),
                _ => Err(InvalidJwk::Incomplete),
            },
            _ => Err(InvalidJwk::Kind),
        }
    }

    fn can(&self, algorithm: Algorithm) -> bool {
        match self {
            Material::Rsa { .. } => rsa_scheme(algorithm).is_some(),
            Material::P256(_) => algorithm == Algorithm::Es256,
            Material::P384(_) => algorithm == Algorithm::Es384,
            Material::Ed25519(_) => algorithm == Algorithm::EdDsa,
        }
    }

    fn verify(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let unparsed = |scheme: &'static dyn signature::VerificationAlgorithm, key: &[u8]| {
            UnparsedPublicKey::new(scheme, key).verify(message, signature)
        };
        let verified = match self {
            Material::Rsa { n, e } => {
                let Some(scheme) = rsa_scheme(algorithm) else {
                    return false;
                };
                RsaPublicKeyComponents { n, e }.verify(scheme, message, signature)
            }
            Material::P256(point) => unparsed(&signature::ECDSA_P256_SHA256_FIXED, point),
            Material::P384(point) => unparsed(&signature::ECDSA_P384_SHA384_FIXED, point),
            Material::Ed25519(key) => unparsed(&signature::ED25519, key),
        };
        verified.is_ok()
    }
}

/// Silence means that a key is for everything.
fn is_for_signatures(jwk: &Map<String, Value>) -> bool {
    let usage = jwk.get("use").is_none_or(|usage| usage == "sig");
    let operations = jwk.get("key_ops").is_none_or(|operations| {
        let operations = operations.as_array().map(Vec::as_slice).unwrap_or_default();
        operations.iter().any(|operation| operation == "verify")
    });
    usage && operations
}

fn rsa(n: &[u8], e: &[u8]) -> Result<Material, InvalidJwk> {
    // Some write a number with a zero in front, as ASN.1 does.
    let [n, e] = [n, e].map(|number| {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        number[zeros..].to_vec()
    });
    let bits = match n.first() {
        Some(first) => n.len() * 8 - first.leading_zeros() as usize,
        None => 0,
    };
    match (2048..=8192).contains(&bits) && !e.is_empty() {
        true => Ok(Material::Rsa { n, e }),
        false => Err(InvalidJwk::Length),
    }
}

/// A point in its long form, as `ring` reads it.
fn point(length: usize, x: &[u8], y: &[u8]) -> Result<Vec<u8>, InvalidJwk> {
    match x.len() == length && y.len() == length {
        true => Ok([&[4], x, y].concat()),
        false => Err(InvalidJwk::Incomplete),
    }
}

fn rsa_scheme(algorithm: Algorithm) -> Option<&'static signature::RsaParameters> {
    Some(match algorithm {
        Algorithm::Rs256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        Algorithm::Rs384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        Algorithm::Rs512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        Algorithm::Ps256 => &signature::RSA_PSS_2048_8192_SHA256,
        Algorithm::Ps384 => &signature::RSA_PSS_2048_8192_SHA384,
        Algorithm::Ps512 => &signature::RSA_PSS_2048_8192_SHA512,
        Algorithm::Es256 | Algorithm::Es384 | Algorithm::EdDsa => return None,
    })
}
