//! Secrets of every kind, concatenated at run time, so that this file does not contain any.

/// A secret in its context.
pub(crate) struct Planted {
    /// The id of the rule that is expected to find it.
    pub(crate) rule: &'static str,
    /// The text with the secret.
    pub(crate) text: String,
    /// The parts that must be redacted; a key block has several lines.
    pub(crate) secrets: Vec<String>,
}

const DIGITS: &str = "0123456789";
const HEX: &str = "0123456789abcdef";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Returns one secret of every kind.
pub(crate) fn all() -> Vec<Planted> {
    let mut dice = Dice::new(1);
    let mut all = tokens(&mut dice);
    all.extend(in_context(&mut dice));
    all.extend(blocks(&mut dice));
    all
}

/// Returns secrets that are recognized by their form.
fn tokens(dice: &mut Dice) -> Vec<Planted> {
    let mut all = Vec::new();
    let mut token = |rule, parts: &[(&str, &str, usize)]| {
        let part = |(fixed, alphabet, length): &(&str, &str, usize)| {
            format!("{fixed}{}", dice.text(alphabet, *length))
        };
        let text: String = parts.iter().map(part).collect();
        let secrets = vec![text.clone()];
        all.push(Planted {
            rule,
            text,
            secrets,
        });
    };
    token("aws-access-key-id", &[("AKIA", UPPER, 16)]);
    token("github-pat", &[("ghp_", ALNUM, 36)]);
    token(
        "github-fine-grained-pat",
        &[("github_pat_", ALNUM, 22), ("_", ALNUM, 59)],
    );
    token("github-oauth", &[("gho_", ALNUM, 36)]);
    token("github-app-token", &[("ghs_", ALNUM, 36)]);
    token("github-refresh-token", &[("ghr_", ALNUM, 76)]);
    token("gitlab-pat", &[("glpat-", URL64, 20)]);
    token("gitlab-token", &[("glrt-", URL64, 20)]);
    token(
        "slack-token",
        &[("xoxb-", DIGITS, 12), ("-", DIGITS, 12), ("-", ALNUM, 24)],
    );
    token("stripe-secret-key", &[("sk_live_", ALNUM, 24)]);
    token("stripe-webhook-secret", &[("whsec_", ALNUM, 32)]);
    token("google-api-key", &[("AIza", URL64, 35)]);
    token("google-oauth-client-secret", &[("GOCSPX-", URL64, 28)]);
    token("google-oauth-token", &[("ya29.", URL64, 80)]);
    token(
        "openai-api-key",
        &[
            ("sk-proj-", URL64, 74),
            ("T3Blbk", "FJ", 2),
            ("", URL64, 74),
        ],
    );
    token(
        "anthropic-api-key",
        &[("sk-ant-", "api03", 5), ("-", URL64, 93), ("", "A", 2)],
    );
    token("huggingface-token", &[("hf_", ALNUM, 34)]);
    token("npm-token", &[("npm_", ALNUM, 36)]);
    token("pypi-token", &[("pypi-AgE", URL64, 120)]);
    token("crates-io-token", &[("cio", ALNUM, 32)]);
    token("docker-token", &[("dckr_pat_", URL64, 27)]);
    token("sendgrid-api-key", &[("SG.", URL64, 22), (".", URL64, 43)]);
    token("mailgun-api-key", &[("key-", HEX, 32)]);
    token(
        "telegram-bot-token",
        &[("", "123456789", 9), (":AA", URL64, 33)],
    );
    token("digitalocean-token", &[("dop_v1_", HEX, 64)]);
    token("heroku-api-key", &[("HRKU-AA", URL64, 58)]);
    token("databricks-token", &[("dapi", HEX, 32)]);
    token("shopify-token", &[("shpat_", HEX, 32)]);
    token("square-token", &[("sq0atp-", URL64, 22)]);
    token("vault-token", &[("hvs.", URL64, 90)]);
    token("grafana-token", &[("glsa_", ALNUM, 32), ("_", HEX, 8)]);
    token("linear-api-key", &[("lin_api_", ALNUM, 40)]);
    token(
        "age-secret-key",
        &[("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)],
    );
    token(
        "jwt",
        &[("eyJ", ALNUM, 33), (".eyJ", ALNUM, 60), (".", URL64, 43)],
    );
    token("azure-client-secret", &[("", ALNUM, 3), ("8Q~", ALNUM, 34)]);
    token(
        "tailscale-key",
        &[("tskey-auth-", ALNUM, 17), ("-", ALNUM, 32)],
    );
    all
}

/// Returns secrets that are recognized by their context.
fn in_context(dice: &mut Dice) -> Vec<Planted> {
    let mut all = Vec::new();
    let mut around = |rule, before: &str, alphabet, length, after: &str| {
        let secret = dice.text(alphabet, length);
        let text = format!("{before}{secret}{after}");
        let secrets = vec![secret];
        all.push(Planted {
            rule,
            text,
            secrets,
        });
    };
    around(
        "aws-secret-access-key",
        "aws_secret_access_key = ",
        BASE64,
        40,
        "",
    );
    around(
        "azure-storage-key",
        "AccountName=store;AccountKey=",
        BASE64,
        86,
        "==;",
    );
    around(
        "slack-webhook",
        "https://hooks.slack.com/services/T",
        ALNUM,
        42,
        "",
    );
    around(
        "discord-webhook",
        "https://discord.com/api/webhooks/1122334455667788/",
        URL64,
        68,
        "",
    );
    around(
        "discord-bot-token",
        "Discord bot M",
        ALNUM,
        25,
        ".GhTzuP.kQ7vWm2XbL9sRt4YnE6cAp1ZdF8jUo",
    );
    around("twilio-api-key", "twilio SK", HEX, 32, "");
    around(
        "cloudflare-api-token",
        "CLOUDFLARE_API_TOKEN=",
        ALNUM,
        40,
        "",
    );
    around(
        "heroku-api-key",
        "heroku_api_key: 3fa85f64-7c1e-4b9a-8d25-",
        HEX,
        12,
        "",
    );
    around(
        "database-url-password",
        "postgres://app:",
        ALNUM,
        14,
        "@db.internal:5432/app",
    );
    around(
        "url-password",
        "https://ada:",
        ALNUM,
        14,
        "@git.internal/repository",
    );
    around(
        "authorization-header",
        "Authorization: Bearer ",
        ALNUM,
        32,
        "",
    );
    around(
        "authorization-header",
        "authorization: Basic ",
        BASE64,
        28,
        "=",
    );
    around(
        "connection-string-password",
        "Server=db;User Id=app;Password=",
        ALNUM,
        14,
        ";",
    );
    around(
        "npmrc-auth",
        "//registry.internal/:_authToken=",
        ALNUM,
        36,
        "",
    );
    around(
        "netrc-password",
        "machine git.internal login ada password ",
        ALNUM,
        14,
        "",
    );
    around("docker-config-auth", "\"auth\": \"", BASE64, 32, "\"");
    around("password", "DB_PASSWORD=", ALNUM, 12, "");
    around("password", "password = \"", ALNUM, 12, "\"");
    around("password", "the password is ", ALNUM, 12, "");
    around("secret", "SESSION_SECRET=", HEX, 64, "");
    around("secret", "\"client_secret\": \"", ALNUM, 40, "\"");
    around("url-token", "?access_token=", LOWER, 32, "&page=2");
    all
}

/// Returns key blocks.
fn blocks(dice: &mut Dice) -> Vec<Planted> {
    let mut block = |rule, kind: &str| {
        let mut secrets: Vec<_> = (0..6).map(|_| dice.text(BASE64, 64)).collect();
        secrets.push(dice.text(BASE64, 22));
        let lines = secrets.join("\n");
        let text = format!("-----BEGIN {kind}-----\n{lines}==\n-----END {kind}-----");
        Planted {
            rule,
            text,
            secrets,
        }
    };
    vec![
        block("private-key", "RSA PRIVATE KEY"),
        block("private-key", "PRIVATE KEY"),
        block("private-key", "EC PRIVATE KEY"),
        block("private-key", "ENCRYPTED PRIVATE KEY"),
        block("ssh-private-key", "OPENSSH PRIVATE KEY"),
        block("pgp-private-key", "PGP PRIVATE KEY BLOCK"),
    ]
}

/// Pseudo-random numbers, equal in every run.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below a limit.
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % most
    }

    pub(crate) fn text(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet = alphabet.as_bytes();
        let mut pick = || char::from(alphabet[self.below(alphabet.len())]);
        // The first and last character are letters: others could be taken for punctuation.
        let mut text: String = (0..length.saturating_sub(2)).map(|_| pick()).collect();
        let mut alnum = || loop {
            let char = pick();
            if char.is_ascii_alphanumeric() {
                return char;
            }
        };
        text.extend((text.len()..length).map(|_| alnum()));
        text
    }
}
