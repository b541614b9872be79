//! What no form may ask for, because its answer passes through the client and perhaps a model.

/// Names of fields that ask for a secret, in lower case and without separators.
const SECRETS: [&str; 22] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "authtoken",
    "bearertoken",
    "cardnumber",
    "clientsecret",
    "creditcard",
    "creditcardnumber",
    "cvc",
    "cvv",
    "passphrase",
    "passwd",
    "password",
    "pincode",
    "privatekey",
    "refreshtoken",
    "secretkey",
    "seedphrase",
    "securitycode",
    "userpassword",
];

/// Says whether the name of a field asks for a password, a key, a token or a means of payment.
///
/// Only names that mean nothing else: a form that spells its question differently is its author's duty.
pub(super) fn is_asked_by(field: &str) -> bool {
    let letters = field.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    SECRETS.contains(&&*name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_it_is_spelt_a_secret_is_recognised() {
        for field in [
            "password",
            "Password",
            "apiKey",
            "api_key",
            "API-KEY",
            "credit card number",
        ] {
            assert!(is_asked_by(field), "{field}");
        }
    }

    #[test]
    fn what_may_mean_something_else_is_let_through() {
        for field in [
            "",
            "name",
            "token_count",
            "secret_santa",
            "password_hint",
            "key",
            "pin",
        ] {
            assert!(!is_asked_by(field), "{field}");
        }
    }
}
