#![cfg(unix)]

use std::{fs, os::unix::fs::symlink};

use super::*;

#[test]
fn a_file_is_opened_only_by_a_path_without_links() {
    let folder = std::env::temp_dir().canonicalize().unwrap();
    let folder = folder.join(format!("turnbuckle-open-{}", std::process::id()));
    fs::create_dir_all(folder.join("real")).unwrap();
    fs::write(folder.join("real/file"), "text").unwrap();
    symlink(folder.join("real"), folder.join("link")).unwrap();
    symlink(folder.join("real/file"), folder.join("file")).unwrap();
    let opens = |name: &str| open_file(&folder.join(name)).is_ok();
    let opened = [
        "real/file",
        "link/file",
        "file",
        "real",
        "real/../real/file",
    ]
    .map(opens);
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(opened, [true, false, false, false, false]);
}
