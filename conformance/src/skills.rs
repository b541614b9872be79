//! Skills: the folder `skills` of this package.

use turnbuckle::{Server, Skills};

/// Registers these skills. Scenarios read the first of them, which contains a folder.
pub(crate) fn offer(server: Server) -> Server {
    server.skills(Skills::from_folder(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/skills"
    )))
}
