//! Whose a project's files are.
//!
//! In a folder that others can write to, such as `/tmp`, any user can leave a configuration for a user who works below it. So a
//! project's file counts only if it and its folders belong to the user, as git demands of a repository.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

/// Returns the first of a file, its folder and the folder of its project that does not belong to the user.
///
/// `opened` is about the file that was read, whatever is found under its name by now. Of a symbolic link both the link and
/// its target have to belong to the user.
#[cfg(unix)]
pub(super) fn find_foreign(
    file: &Path,
    opened: &Metadata,
    project: &Path,
    user_id: u32,
) -> Option<PathBuf> {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    let is_foreign = |path: &Path| {
        let owners = [fs::symlink_metadata(path), fs::metadata(path)];
        // A file that cannot be examined counts as foreign.
        let mut owners = owners.iter();
        owners.any(|owner| !matches!(owner, Ok(owner) if owner.uid() == user_id))
    };
    if opened.uid() != user_id {
        return Some(file.to_owned());
    }
    let mut paths = [Some(file), file.parent(), Some(project)]
        .into_iter()
        .flatten();
    paths.find(|path| is_foreign(path)).map(Path::to_owned)
}

/// Returns nothing: there is no such check on this system.
#[cfg(not(unix))]
pub(super) fn find_foreign(_: &Path, _: &Metadata, _: &Path, _: u32) -> Option<PathBuf> {
    None
}
