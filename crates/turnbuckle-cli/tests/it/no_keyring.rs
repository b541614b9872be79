//! The keyring of the system, in a build that cannot ask it.

use crate::authority::Authority;
use crate::stage::Stage;

#[test]
fn who_wants_a_keyring_is_told_how_to_build_one_in() {
    let stage = Stage::new();
    let authority = Authority::new(&stage);

    insta::assert_snapshot!(stage.run(&["login", &authority.url(), "--keyring"]), @r"
    --- stderr
    error: authorization failed while keeping the token: this build cannot ask the keyring of the system for the key to the logins

    hint: nothing was changed; build it with the feature `keyring`: `cargo install --path crates/turnbuckle-cli --features keyring`
    --- exit 2
    ");
}
