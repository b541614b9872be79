use std::fs;

use super::*;

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    (folder, path)
}

fn repository(at: &Path, head: &str) {
    fs::create_dir_all(at.join(".git/worktrees")).unwrap();
    fs::write(at.join(".git/HEAD"), head).unwrap();
}

/// What `git worktree add` leaves on both sides.
fn worktree(of: &Path, at: &Path, name: &str) {
    let own = of.join(".git/worktrees").join(name);
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(at).unwrap();
    fs::write(at.join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
    fs::write(
        own.join("gitdir"),
        format!("{}\n", at.join(".git").display()),
    )
    .unwrap();
    fs::write(own.join("commondir"), "../..\n").unwrap();
    fs::write(own.join("HEAD"), format!("ref: refs/heads/{name}\n")).unwrap();
}

fn at(path: &Path) -> Project {
    Project::find(path.to_str().unwrap()).unwrap()
}

#[test]
fn a_folder_without_version_control_is_a_project() {
    let (_keep, path) = folder();
    let project = at(&path);
    assert_eq!(project.root(), path);
    assert_eq!(project.branch(), "default");
    assert_eq!(project.id().len(), 16);
}

#[test]
fn a_folder_in_a_repository_belongs_to_it() {
    let (_keep, path) = folder();
    repository(&path, "ref: refs/heads/feature/x\n");
    fs::create_dir_all(path.join("src/deep")).unwrap();
    let inner = at(&path.join("src/deep"));
    assert_eq!(inner.id(), at(&path).id());
    assert_eq!(inner.root(), path);
    assert_eq!(inner.folder(), path.join("src/deep"));
    assert_eq!(inner.branch(), "feature/x");
}

#[test]
fn a_worktree_is_the_same_project_on_another_branch() {
    let (_keep, path) = folder();
    let (main, tree) = (path.join("main"), path.join("tree"));
    repository(&main, "ref: refs/heads/main\n");
    worktree(&main, &tree, "topic");
    let project = at(&tree);
    assert_eq!(project.id(), at(&main).id());
    assert_eq!((project.root(), project.checkout()), (&*main, &*tree));
    assert_eq!(project.branch(), "topic");
}

#[test]
fn a_folder_that_only_claims_to_be_a_worktree_is_not_believed() {
    let (_keep, path) = folder();
    let (main, tree, thief) = (path.join("main"), path.join("tree"), path.join("thief"));
    repository(&main, "ref: refs/heads/main\n");
    worktree(&main, &tree, "topic");
    fs::create_dir_all(&thief).unwrap();
    fs::copy(tree.join(".git"), thief.join(".git")).unwrap();
    assert_ne!(at(&thief).id(), at(&main).id());
    assert_eq!(at(&thief).root(), thief);
}

#[cfg(unix)]
#[test]
fn a_link_leads_to_the_project_itself() {
    let (_keep, path) = folder();
    repository(
        &path.join("real"),
        "0123456789abcdef0123456789abcdef01234567\n",
    );
    std::os::unix::fs::symlink(path.join("real"), path.join("link")).unwrap();
    assert_eq!(at(&path.join("link")), at(&path.join("real")));
    assert_eq!(at(&path.join("link")).branch(), "0123456789ab");
}

#[test]
fn what_is_no_folder_is_refused_with_advice() {
    let (_keep, path) = folder();
    fs::write(path.join("file"), "").unwrap();
    for (wrong, said) in [
        ("src".to_owned(), "absolute"),
        (String::new(), "absolute"),
        (format!("{}/../x", path.display()), "`..`"),
        (
            path.join("nowhere").display().to_string(),
            "existing folder",
        ),
        (path.join("file").display().to_string(), "is a file"),
    ] {
        let error = Project::find(&wrong).unwrap_err().to_string();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}

#[cfg(unix)]
#[test]
fn a_head_that_is_a_link_or_no_commit_names_no_branch() {
    let (_keep, path) = folder();
    repository(&path, "not a commit, but something long enough to be one\n");
    assert_eq!(at(&path).branch(), "default");
    fs::write(path.join("elsewhere"), "ref: refs/heads/private\n").unwrap();
    fs::remove_file(path.join(".git/HEAD")).unwrap();
    std::os::unix::fs::symlink(path.join("elsewhere"), path.join(".git/HEAD")).unwrap();
    assert_eq!(at(&path).branch(), "default");
    assert_eq!(at(&path).root(), path);
}

#[test]
fn the_head_of_another_repository_is_not_read() {
    let (_keep, path) = folder();
    let (main, thief) = (path.join("main"), path.join("thief"));
    repository(&main, "ref: refs/heads/private\n");
    fs::create_dir_all(&thief).unwrap();
    fs::write(thief.join(".git"), "gitdir: ../main/.git\n").unwrap();
    assert_eq!(at(&thief).branch(), "default");
}

#[test]
fn a_submodule_has_its_own_branch() {
    let (_keep, path) = folder();
    repository(&path, "ref: refs/heads/main\n");
    let (own, module) = (path.join(".git/modules/part"), path.join("part"));
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(&module).unwrap();
    fs::write(own.join("HEAD"), "ref: refs/heads/topic\n").unwrap();
    fs::write(module.join(".git"), "gitdir: ../.git/modules/part\n").unwrap();
    assert_eq!(at(&module).branch(), "topic");
    assert_eq!(at(&module).root(), module);
}
