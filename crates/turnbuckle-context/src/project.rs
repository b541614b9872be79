//! Maps folders to projects.
//!
//! A project is the repository that contains a folder, or else the folder itself. The worktrees of a repository are one
//! project. Remotes are ignored, since any folder can claim any remote.

use std::{
    ffi::OsStr,
    path::{Component, Path, PathBuf},
};

use crate::{
    ContextError, Redactor,
    mcp::display::sanitize,
    owner::short_hash,
    storage::dir_handle::{DirEntryKind, DirHandle},
};

/// Maximum size of files read from a `.git` folder.
const MAX_GIT_FILE_BYTES: u64 = 8 * 1024;
/// The start of the path of a project with a key.
const KEY_PREFIX: &str = "project:";
const MAX_KEY_BYTES: usize = 100;
/// The branch of a folder without version control.
const DEFAULT_BRANCH: &str = "default";

/// A project, as seen from one of its folders. All paths are canonical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    id: String,
    root: PathBuf,
    checkout: PathBuf,
    folder: PathBuf,
    branch: String,
}

impl Project {
    /// Returns the project of a folder, given by its absolute path.
    pub fn find(path: &str) -> Result<Self, ContextError> {
        let folder = canonical_dir(path)?;
        let Some((checkout, git)) = find_git(&folder)? else {
            return Ok(Self::new(
                folder.clone(),
                folder.clone(),
                folder,
                DEFAULT_BRANCH.to_owned(),
            ));
        };
        let branch = git.folder.as_ref().and_then(head_branch);
        let branch = branch.unwrap_or_else(|| DEFAULT_BRANCH.to_owned());
        let root = git.main_checkout.unwrap_or_else(|| checkout.clone());
        Ok(Self::new(root, checkout, folder, branch))
    }

    /// Returns the project with a key that its clients agree on, so that it does not depend on folders of one machine.
    ///
    /// A key consists of ASCII letters, digits, `.`, `_`, `-` and `/`, as in `acme/app`.
    pub fn from_key(key: &str) -> Result<Self, ContextError> {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte);
        if !(1..=MAX_KEY_BYTES).contains(&key.len()) || !key.bytes().all(is_allowed) {
            return Err(ContextError::invalid(format!(
                "`{}` is not a key of a project; expected 1 to {MAX_KEY_BYTES} letters, digits, `.`, `_`, `-` and `/`, as in `acme/app`",
                display_path(Path::new(key))
            )));
        }
        let root = PathBuf::from(format!("{KEY_PREFIX}{key}"));
        let mut project = Self::new(root.clone(), root.clone(), root, DEFAULT_BRANCH.to_owned());
        project.id = short_hash(&["project-key", key]);
        Ok(project)
    }

    /// Returns the key in a path that is `project:` and a key.
    pub(crate) fn key_in(path: &str) -> Option<&str> {
        path.strip_prefix(KEY_PREFIX)
    }

    /// Fails if the project has a key and therefore no folder on this machine.
    pub(crate) fn require_folder(&self) -> Result<(), ContextError> {
        match Self::key_in(&self.root.to_string_lossy()) {
            None => Ok(()),
            Some(_) => Err(ContextError::invalid(
                "a project key does not name files of this server; pass the absolute path of a folder",
            )),
        }
    }

    /// Returns the project with this root, even if the folder no longer exists. Files are not read.
    pub fn from_stored(root: &str) -> Result<Self, ContextError> {
        if let Some(key) = Self::key_in(root) {
            return Self::from_key(key);
        }
        let root = normalize_absolute(root)?;
        Ok(Self::new(
            root.clone(),
            root.clone(),
            root,
            DEFAULT_BRANCH.to_owned(),
        ))
    }

    fn new(root: PathBuf, checkout: PathBuf, folder: PathBuf, branch: String) -> Self {
        let id = short_hash(&["project", &root.to_string_lossy()]);
        Self {
            id,
            root,
            checkout,
            folder,
            branch,
        }
    }

    /// Returns the id: sixteen hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the main checkout of the repository, or the folder itself. Data is stored by this path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the checkout that contains the folder; it differs from the root in a worktree.
    pub fn checkout(&self) -> &Path {
        &self.checkout
    }

    /// Returns the folder passed to [`find`](Self::find).
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the checked-out branch, a short commit id if no branch is checked out, or `default` without version control.
    pub fn branch(&self) -> &str {
        &self.branch
    }
}

/// A parsed `.git` folder or file.
struct GitDir {
    /// The folder of `HEAD`, if it is trusted.
    folder: Option<DirHandle>,
    /// The main checkout, if this is a worktree.
    main_checkout: Option<PathBuf>,
}

fn canonical_dir(path: &str) -> Result<PathBuf, ContextError> {
    let path = normalize_absolute(path)?;
    let canonical = path.canonicalize().map_err(|error| {
        ContextError::invalid(format!(
            "`{}` cannot be used as a project ({error}); pass the absolute path of an existing folder",
            display_path(&path)
        ))
    })?;
    if !canonical.is_dir() {
        return Err(ContextError::invalid(format!(
            "`{}` is a file; pass the absolute path of the project's folder",
            display_path(&path)
        )));
    }
    Ok(canonical)
}

/// Returns a path escaped for messages.
fn display_path(path: &Path) -> String {
    sanitize(&path.to_string_lossy()).into_owned()
}

/// Checks that a path is absolute and without `..`, and removes `.`.
fn normalize_absolute(path: &str) -> Result<PathBuf, ContextError> {
    let path = Path::new(path.trim_end_matches('\n'));
    if !path.is_absolute() {
        return Err(ContextError::invalid(format!(
            "`{}` is not absolute; pass the absolute path of the project's folder",
            display_path(path)
        )));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(ContextError::invalid(format!(
            "`{}` contains `..`; pass the path of the project's folder without it",
            display_path(path)
        )));
    }
    Ok(path.components().collect())
}

/// Returns the repository that contains a folder. It is read through open folders, so links in the path are not followed.
fn find_git(folder: &Path) -> Result<Option<(PathBuf, GitDir)>, ContextError> {
    let folders = DirHandle::open_with_parents(folder).map_err(|error| {
        ContextError::invalid(format!(
            "`{}` cannot be used as a project ({error}); it may have changed just now, try again",
            display_path(folder)
        ))
    })?;
    // `folders` starts with the outermost, `ancestors` with the innermost.
    let with_paths = folders.iter().rev().zip(folder.ancestors());
    let mut found =
        with_paths.filter_map(|(open, path)| Some((path.to_owned(), read_git(open, path)?)));
    Ok(found.next())
}

fn read_git(checkout: &DirHandle, path: &Path) -> Option<GitDir> {
    let name = OsStr::new(".git");
    if checkout.stat(name).ok()?.kind == DirEntryKind::Dir {
        let folder = checkout.open_dir(name).ok()?;
        let has_head = folder.stat(OsStr::new("HEAD")).is_ok();
        return has_head.then_some(GitDir {
            folder: Some(folder),
            main_checkout: None,
        });
    }
    let text = read_small(checkout, ".git")?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let git_path = path.join(named).canonicalize().ok()?;
    let folder = DirHandle::open(&git_path).ok()?;
    if links_back(&path.join(".git"), &folder) {
        return Some(GitDir {
            main_checkout: main_checkout(&folder, &git_path),
            folder: Some(folder),
        });
    }
    Some(GitDir {
        folder: Some(folder).filter(|_| is_submodule_dir(path, &git_path)),
        main_checkout: None,
    })
}

/// Returns whether a repository lists this worktree.
///
/// Any folder can claim to be a worktree of a repository. The claim is accepted only if the repository confirms it.
fn links_back(entry: &Path, folder: &DirHandle) -> bool {
    let back = read_small(folder, "gitdir");
    let back = back.and_then(|back| Path::new(back.trim()).canonicalize().ok());
    back.is_some_and(|back| back == entry)
}

/// Returns whether this is the submodule folder of an enclosing repository.
fn is_submodule_dir(checkout: &Path, folder: &Path) -> bool {
    let mut around = checkout.ancestors().skip(1);
    around.any(|around| folder.starts_with(around.join(".git/modules")))
}

/// Returns the main checkout of the repository, given the `.git` folder of a worktree.
fn main_checkout(folder: &DirHandle, git_path: &Path) -> Option<PathBuf> {
    let common = read_small(folder, "commondir")?;
    let common = git_path.join(common.trim()).canonicalize().ok()?;
    // The `.git` folder of the worktree must be inside the repository that it names.
    if git_path.parent()? != common.join("worktrees") || !common.ends_with(".git") {
        return None;
    }
    common.parent().map(Path::to_owned)
}

/// Returns the branch in `HEAD`, redacted because it is stored with all data.
fn head_branch(git: &DirHandle) -> Option<String> {
    let head = read_small(git, "HEAD")?;
    let head = head.trim();
    let Some(name) = head.strip_prefix("ref:") else {
        let is_commit =
            matches!(head.len(), 40 | 64) && head.bytes().all(|byte| byte.is_ascii_hexdigit());
        return is_commit.then(|| head[..12].to_owned());
    };
    let name = name.trim();
    let name = name.strip_prefix("refs/heads/").unwrap_or(name);
    // Git rejects such branch names, so this may be an attack.
    if name.chars().any(char::is_control) {
        return None;
    }
    Some(Redactor::standard().redact(name).text.into_owned())
}

/// Reads a small file of a `.git` folder. Links are not followed: they could lead to private files.
fn read_small(folder: &DirHandle, name: &str) -> Option<String> {
    let bytes = folder.read_small(name, MAX_GIT_FILE_BYTES).ok()?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
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

    /// Creates the files that `git worktree add` creates.
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
    fn a_worktree_belongs_to_the_same_project() {
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
    fn an_unconfirmed_worktree_is_its_own_project() {
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
    fn a_symlink_resolves_to_the_project() {
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
    fn an_invalid_folder_is_rejected_with_advice() {
        let (_keep, path) = folder();
        fs::write(path.join("file"), "").unwrap();
        for (wrong, expected) in [
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
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn an_invalid_or_linked_head_gives_the_default_branch() {
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
    fn a_key_is_a_project_without_a_folder() {
        let project = Project::from_key("acme/app").unwrap();
        assert_eq!(project.root(), Path::new("project:acme/app"));
        assert_eq!(project, Project::from_stored("project:acme/app").unwrap());
        assert_ne!(
            project.id(),
            Project::from_stored("/acme/app").unwrap().id()
        );
        project.require_folder().unwrap_err();
        for wrong in ["", "a b", "a\n", "é", &"x".repeat(101)] {
            Project::from_key(wrong).unwrap_err();
        }
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
}
