//! The keyring options in a build without the feature `keyring`.

use crate::{auth_server::AuthServer, sandbox::Sandbox};

#[test]
fn keyring_option_without_the_feature_names_the_build_command() {
    let sandbox = Sandbox::new();
    let auth_server = AuthServer::new(&sandbox);

    insta::assert_snapshot!(sandbox.run(&["login", &auth_server.url(), "--keyring"]), @r"
    --- stderr
    error: authorization failed while storing the token: this build does not support the system keyring

    hint: nothing was changed; build with keyring support: `cargo install --path crates/turnbuckle-cli --features keyring`
    --- exit 2
    ");
}
