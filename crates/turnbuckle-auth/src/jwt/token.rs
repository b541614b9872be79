//! A signed token, taken apart.

use std::fmt;

use serde_json::{Map, Value};

use super::{Algorithm, Jwk, UnknownAlgorithm, decode};

/// A token that was read, and of which nothing is to be believed until it is [verified](Token::verify).
pub struct Token<'a> {
    header: Map<String, Value>,
    algorithm: Algorithm,
    claims: Map<String, Value>,
    signed: &'a str,
    signature: Vec<u8>,
}

/// Why a text is no signed token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidToken {
    /// Longer than is read.
    #[error("a token has at most {} bytes", Token::MOST_BYTES)]
    TooLong,
    /// Not three parts in base64url, of which the first two are JSON objects.
    #[error("the token is no signed JWT")]
    Form,
    /// Not signed, or not in a way that proves who signed it.
    #[error(transparent)]
    Algorithm(#[from] UnknownAlgorithm),
    /// It demands that something be understood which is not.
    #[error("the token needs an extension that is not supported")]
    Critical,
}

impl<'a> Token<'a> {
    /// The most bytes of a token that are read.
    pub const MOST_BYTES: usize = 16 * 1024;

    /// Takes a token apart: header, claims, signature.
    pub fn parse(text: &'a str) -> Result<Self, InvalidToken> {
        if text.len() > Self::MOST_BYTES {
            return Err(InvalidToken::TooLong);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(InvalidToken::Form)?;
        let (header, claims) = signed.split_once('.').ok_or(InvalidToken::Form)?;
        let header = object(header)?;
        let claims = object(claims)?;
        if header.contains_key("crit") {
            return Err(InvalidToken::Critical);
        }
        let is_text = |name| header.get(name).is_none_or(Value::is_string);
        if !is_text("kid") || !is_text("typ") {
            return Err(InvalidToken::Form);
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        Ok(Self {
            algorithm: algorithm.ok_or(InvalidToken::Form)?.parse()?,
            signature: decode(signature).ok_or(InvalidToken::Form)?,
            header,
            claims,
            signed,
        })
    }

    /// Returns how it says that it is signed.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the name of the key that it says it is signed by (`kid`).
    pub fn key_id(&self) -> Option<&str> {
        self.header("kid").and_then(Value::as_str)
    }

    /// Returns what kind of token it says it is (`typ`).
    pub fn kind(&self) -> Option<&str> {
        self.header("typ").and_then(Value::as_str)
    }

    /// Returns something else that its header says.
    pub fn header(&self, name: &str) -> Option<&Value> {
        self.header.get(name)
    }

    /// Returns a claim that anybody may have written, such as whose keys to ask.
    pub fn unverified_claim(&self, name: &str) -> Option<&Value> {
        self.claims.get(name)
    }

    /// Returns the claims, if the token is signed by one of these keys.
    pub fn verify<'k>(self, keys: impl IntoIterator<Item = &'k Jwk>) -> Option<Map<String, Value>> {
        let is_signed =
            |key: &Jwk| key.verify(self.algorithm, self.signed.as_bytes(), &self.signature);
        keys.into_iter().any(is_signed).then_some(self.claims)
    }
}

fn object(part: &str) -> Result<Map<String, Value>, InvalidToken> {
    let json = decode(part).ok_or(InvalidToken::Form)?;
    serde_json::from_slice(&json).map_err(|_| InvalidToken::Form)
}

/// Shows nothing that could be used.
impl fmt::Debug for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.algorithm)
    }
}
