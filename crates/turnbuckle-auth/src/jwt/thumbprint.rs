//! The name that a public key has by itself (RFC 7638).

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Returns the hash of what makes the key, whatever else is said about it; `None` if it is no key of a kind we know.
pub(crate) fn thumbprint(jwk: &Map<String, Value>) -> Option<String> {
    let members: &[&str] = match jwk.get("kty")?.as_str()? {
        "EC" => &["crv", "kty", "x", "y"],
        "OKP" => &["crv", "kty", "x"],
        "RSA" => &["e", "kty", "n"],
        _ => return None,
    };
    let written: Option<Vec<String>> = members
        .iter()
        .map(|name| {
            Some(format!(
                "\"{name}\":{}",
                Value::from(jwk.get(*name)?.as_str()?)
            ))
        })
        .collect();
    let canonical = format!("{{{}}}", written?.join(","));
    Some(super::encode(Sha256::digest(canonical)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_one_that_the_standard_shows() {
        // The example of RFC 7638, section 3.1, and the one of RFC 8037, appendix A.3.
        let rsa = serde_json::json!({
            "kid": "2011-04-29", "alg": "RS256", "e": "AQAB", "kty": "RSA",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        });
        let ed25519 = serde_json::json!({
            "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
        });

        for (key, expected) in [
            (rsa, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"),
            (ed25519, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"),
        ] {
            assert_eq!(
                thumbprint(key.as_object().unwrap()).as_deref(),
                Some(expected)
            );
        }
    }
}
