//! JSON Web Tokens: parsing, verification keys and signing keys.
//!
//! The format is parsed here; the cryptography comes from `ring` (`docs/decisions/jwt.md` has the reasons). These rules keep
//! forged tokens out:
//!
//! - The *key* determines the allowed algorithms. The header only selects one of them, and `none` and shared-secret
//!   algorithms do not exist as a [`SignatureAlgorithm`].
//! - A header cannot supply its own key: `jwk`, `jku`, `x5c` and `x5u` are ignored.
//! - Every token has one reading: duplicate members, padding and other spellings of base64url are rejected.

#[cfg(test)]
mod attack_tests;
mod jwk;
mod signing_key;
#[cfg(test)]
mod tests;

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
pub use jwk::{InvalidJwk, InvalidJwks, Jwk, Jwks};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Map, Value};
pub use signing_key::{InvalidSigningKey, SigningError, SigningKey};

/// Encodes bytes as unpadded base64url.
pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes unpadded base64url strictly: every value has exactly one valid encoding.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

/// A signature algorithm with a private key, as named in JWTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SignatureAlgorithm {
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

/// The name is not a [`SignatureAlgorithm`]: `none`, a shared-secret algorithm, or an unsupported one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not an accepted signature algorithm", .0.escape_default())]
pub struct UnknownAlgorithm(pub String);

impl SignatureAlgorithm {
    /// All algorithms.
    pub const ALL: [SignatureAlgorithm; 9] = [
        SignatureAlgorithm::Rs256,
        SignatureAlgorithm::Rs384,
        SignatureAlgorithm::Rs512,
        SignatureAlgorithm::Ps256,
        SignatureAlgorithm::Ps384,
        SignatureAlgorithm::Ps512,
        SignatureAlgorithm::Es256,
        SignatureAlgorithm::Es384,
        SignatureAlgorithm::EdDsa,
    ];

    /// Returns the name, as in the `alg` header parameter.
    pub fn as_str(self) -> &'static str {
        match self {
            SignatureAlgorithm::Rs256 => "RS256",
            SignatureAlgorithm::Rs384 => "RS384",
            SignatureAlgorithm::Rs512 => "RS512",
            SignatureAlgorithm::Ps256 => "PS256",
            SignatureAlgorithm::Ps384 => "PS384",
            SignatureAlgorithm::Ps512 => "PS512",
            SignatureAlgorithm::Es256 => "ES256",
            SignatureAlgorithm::Es384 => "ES384",
            SignatureAlgorithm::EdDsa => "EdDSA",
        }
    }
}

impl FromStr for SignatureAlgorithm {
    type Err = UnknownAlgorithm;

    fn from_str(name: &str) -> Result<Self, UnknownAlgorithm> {
        let mut all = Self::ALL.into_iter();
        all.find(|algorithm| algorithm.as_str() == name)
            .ok_or_else(|| UnknownAlgorithm(name.chars().take(32).collect()))
    }
}

impl fmt::Display for SignatureAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A parsed token. Its content must not be trusted before it is [verified](UnverifiedJwt::verify).
pub struct UnverifiedJwt<'a> {
    header: Map<String, Value>,
    algorithm: SignatureAlgorithm,
    claims: Map<String, Value>,
    signed: &'a str,
    signature: Vec<u8>,
}

/// Reason why a text is not a signed token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJwt {
    /// Longer than [`UnverifiedJwt::MAX_BYTES`].
    #[error("a token has at most {} bytes", UnverifiedJwt::MAX_BYTES)]
    TooLong,
    /// Not three base64url parts of which the first two are JSON objects.
    #[error("the token is not a signed JWT")]
    Malformed,
    /// Unsigned, or signed with an unsupported algorithm.
    #[error(transparent)]
    Algorithm(#[from] UnknownAlgorithm),
    /// The header has `crit`, and no critical extension is supported.
    #[error("the token requires an unsupported extension")]
    CriticalHeader,
}

impl<'a> UnverifiedJwt<'a> {
    /// Maximum length of a token, in bytes.
    pub const MAX_BYTES: usize = 16 * 1024;

    /// Splits a token into header, claims and signature.
    pub fn parse(text: &'a str) -> Result<Self, InvalidJwt> {
        if text.len() > Self::MAX_BYTES {
            return Err(InvalidJwt::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(InvalidJwt::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(InvalidJwt::Malformed)?;
        let header = object(header)?;
        let claims = object(claims)?;
        if header.contains_key("crit") {
            return Err(InvalidJwt::CriticalHeader);
        }
        let is_text = |name| header.get(name).is_none_or(Value::is_string);
        if !is_text("kid") || !is_text("typ") {
            return Err(InvalidJwt::Malformed);
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        Ok(Self {
            algorithm: algorithm.ok_or(InvalidJwt::Malformed)?.parse()?,
            signature: decode(signature).ok_or(InvalidJwt::Malformed)?,
            header,
            claims,
            signed,
        })
    }

    /// Returns the algorithm named in the header.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// Returns the key id named in the header (`kid`).
    pub fn key_id(&self) -> Option<&str> {
        self.header("kid").and_then(Value::as_str)
    }

    /// Returns the type named in the header (`typ`).
    pub fn typ(&self) -> Option<&str> {
        self.header("typ").and_then(Value::as_str)
    }

    /// Returns another header parameter.
    pub fn header(&self, name: &str) -> Option<&Value> {
        self.header.get(name)
    }

    /// Returns a claim without verification, for example to choose the keys to verify with.
    pub fn unverified_claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }

    /// Returns the claims if one of the keys has signed the token.
    pub fn verify<'k>(self, keys: impl IntoIterator<Item = &'k Jwk>) -> Option<Map<String, Value>> {
        let is_signed =
            |key: &Jwk| key.verify(self.algorithm, self.signed.as_bytes(), &self.signature);
        keys.into_iter().any(is_signed).then_some(self.claims)
    }
}

fn object(part: &str) -> Result<Map<String, Value>, InvalidJwt> {
    let json = decode(part).ok_or(InvalidJwt::Malformed)?;
    let UniqueMembers(members) =
        serde_json::from_slice(&json).map_err(|_| InvalidJwt::Malformed)?;
    Ok(members)
}

/// A JSON object without duplicate members. RFC 7515 (section 4) and RFC 7519 (section 4) allow to reject duplicates, which parsers
/// read differently.
struct UniqueMembers(Map<String, Value>);

impl<'de> Deserialize<'de> for UniqueMembers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(UniqueMembersVisitor)
    }
}

struct UniqueMembersVisitor;

impl<'de> Visitor<'de> for UniqueMembersVisitor {
    type Value = UniqueMembers;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object without duplicate members")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<UniqueMembers, A::Error> {
        let mut members = Map::new();
        while let Some((name, value)) = entries.next_entry::<String, Value>()? {
            if members.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate member"));
            }
        }
        Ok(UniqueMembers(members))
    }
}

/// Shows only the algorithm.
impl fmt::Debug for UnverifiedJwt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UnverifiedJwt({})", self.algorithm)
    }
}
