#![cfg(unix)]
use std::{fs, io::Read as _, os::unix::fs::symlink, path::PathBuf};

use super::*;

fn temporary() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

#[test]
fn files_below_the_folder_are_opened() {
    let (_keep, path) = temporary();
    fs::create_dir_all(path.join("a/b")).unwrap();
    fs::write(path.join("a/b/c"), "text").unwrap();
    let folder = DirHandle::open(&path).unwrap();
    let mut text = String::new();
    let mut file = folder.open_file("a/b/c").unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
}

#[test]
fn paths_cannot_leave_the_folder() {
    let ((_keep, path), (_outside, outside)) = (temporary(), temporary());
    fs::write(outside.join("secret"), "text").unwrap();
    symlink(&outside, path.join("folder")).unwrap();
    symlink(outside.join("secret"), path.join("file")).unwrap();
    let folder = DirHandle::open(&path).unwrap();
    let name = outside.file_name().unwrap().to_str().unwrap();
    for wrong in [
        "folder/secret",
        "file",
        "..",
        "../x",
        ".",
        "",
        "a/",
        &format!("../{name}/secret"),
    ] {
        assert!(folder.open_file(wrong).is_err(), "{wrong}");
    }
    for wrong in ["folder", "file", "..", ".", "", "folder/."] {
        assert!(folder.open_dir(OsStr::new(wrong)).is_err(), "{wrong}");
    }
    assert!(folder.open_relative(Path::new("folder")).is_err());
    assert!(DirHandle::open(&path.join("folder")).is_err());
    assert!(DirHandle::open_with_parents(&path.join("folder")).is_err());
}

#[test]
fn an_open_folder_is_not_affected_by_renames() {
    let (_keep, path) = temporary();
    fs::create_dir(path.join("a")).unwrap();
    fs::write(path.join("a/mine"), "").unwrap();
    let folder = DirHandle::open(&path.join("a")).unwrap();
    fs::rename(path.join("a"), path.join("b")).unwrap();
    symlink("/", path.join("a")).unwrap();
    let names: Vec<_> = folder
        .entries(1)
        .unwrap()
        .into_iter()
        .map(|one| one.name)
        .collect();
    assert_eq!(names, ["mine"]);
    assert!(folder.is_same(&DirHandle::open(&path.join("b")).unwrap()));
    assert!(folder.is_at(&path.join("b")) && !folder.is_at(&path.join("a")));
    assert!(!folder.is_removed());
    fs::remove_dir_all(path.join("b")).unwrap();
    assert!(folder.is_removed());
}

#[test]
fn a_folder_with_search_permission_only_can_be_traversed() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_keep, path) = temporary();
    fs::create_dir_all(path.join("closed/open")).unwrap();
    let set = |mode| fs::set_permissions(path.join("closed"), fs::Permissions::from_mode(mode));
    set(0o111).unwrap();
    let opened = DirHandle::open(&path.join("closed/open"));
    set(0o755).unwrap();
    assert!(opened.is_ok() || !cfg!(target_os = "linux"), "{opened:?}");
}

#[test]
fn a_pipe_is_rejected_without_waiting() {
    let (_keep, path) = temporary();
    let made = std::process::Command::new("mkfifo")
        .arg(path.join("pipe"))
        .status();
    assert!(made.unwrap().success());
    assert!(DirHandle::open(&path).unwrap().open_file("pipe").is_err());
}

#[test]
fn a_path_with_too_many_components_is_rejected() {
    let long: PathBuf = std::iter::once("/").chain(["x"; 300]).collect();
    let error = DirHandle::open(&long).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
