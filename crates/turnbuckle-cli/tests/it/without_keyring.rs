//! The keyring options in a build without the feature `keyring`.

use crate::{auth_server::AuthServer, sandbox::Sandbox};

#[test]
fn keyring_option_without_the_feature_names_the_build_command() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);

    insta::assert_snapshot!(sandbox.run(&["login", &auth_server.url(), "--keyring"]), @r"
    --- stderr
    error: authorization failed while keeping the token: this build cannot ask the keyring of the system for the key to the logins

    hint: nothing was changed; build it with the feature `keyring`: `cargo install --path crates/turnbuckle-cli --features keyring`
    --- exit 2
    ");
}
