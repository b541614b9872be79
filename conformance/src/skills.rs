//! Skills: the folder beside this one, as it stands.

use turnbuckle::{Server, Skills};

/// Offers these skills. Scenarios look into the first of them, which has a folder inside.
pub(crate) fn offer(server: Server) -> Server {
    server.skills(Skills::from_folder(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/skills"
    )))
}
