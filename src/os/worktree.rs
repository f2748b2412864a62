//! A git worktree and a branch for a slot. It is created once, used again, and never removed by force.

use crate::os::headroom;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// A checkout of a large repository takes a while; after this time it hangs.
const LONGEST: Duration = Duration::from_secs(300);

/// The default name of a daemon, which is left out of paths.
const USUAL_DAEMON: &str = "missiond";

/// The path of a slot's worktree: `<worktrees>/<repository>/<slot>`. The slots of another daemon may have the same
/// names; its name follows that of the repository.
pub fn root(worktrees: &Path, daemon: &str, cwd: &Path, slot: &str) -> PathBuf {
    let top = top_of(cwd).unwrap_or(cwd);
    let mut repository = top.file_name().unwrap_or("root".as_ref()).to_owned();
    if daemon != USUAL_DAEMON {
        repository.push(format!("@{daemon}"));
    }
    worktrees.join(repository).join(slot)
}

/// The worktree that contains this directory, if it is one of these.
pub fn root_of(worktrees: &Path, cwd: &Path) -> Option<PathBuf> {
    let mut below = cwd.strip_prefix(worktrees).ok()?.iter();
    Some(worktrees.join(below.next()?).join(below.next()?))
}

fn top_of(cwd: &Path) -> Option<&Path> {
    cwd.ancestors().find(|above| above.join(".git").exists())
}

/// The directory in the worktree that corresponds to `cwd` in the repository.
pub fn cwd_in(root: &Path, cwd: &Path) -> PathBuf {
    match top_of(cwd).and_then(|top| cwd.strip_prefix(top).ok()) {
        Some(below) if !below.as_os_str().is_empty() => root.join(below),
        _ => root.to_owned(),
    }
}

/// Creates the worktree at `root` for the repository of `cwd`, on the branch `missiond/<slot>`; an existing one stays
/// as it is, with all its files.
pub async fn ensure(root: &Path, cwd: &Path, slot: &str) -> Result<(), String> {
    if root.join(".git").exists() {
        check_same_repository(root, cwd).await?;
        return check_out(root).await;
    }
    git(cwd, &["rev-parse", "--verify", "HEAD"])
        .await
        .map_err(|error| {
            format!(
                "`worktree` needs a git repository with a commit in {}: {error}",
                cwd.display()
            )
        })?;
    if let Some(above) = root.parent() {
        make_private(above)?;
    }
    let branch = format!("missiond/{slot}");
    let path = root.display().to_string();
    let reference = format!("refs/heads/{branch}");
    let known = git(cwd, &["rev-parse", "--verify", "--quiet", &reference]).await;
    let what = match known {
        Ok(_) => vec![path.as_str(), &branch],
        Err(_) => vec!["-b", &branch, &path],
    };
    let add = ["worktree", "add", "--no-checkout"];
    let mut made = git(cwd, &[&add, &what[..]].concat()).await;
    // A worktree that was deleted by hand is still on git's list. No other safeguard may be overridden, such as that a
    // branch is checked out only once.
    if made.as_ref().is_err_and(|error| error.contains(DELETED)) {
        made = git(cwd, &[&add[..], &["-f"], &what[..]].concat()).await;
    }
    let made = match made {
        Ok(_) => check_out(root).await,
        Err(error) => Err(error),
    };
    made.map_err(|error| format!("no worktree could be made at {path}: {error}"))
}

/// Checks out the files in a worktree that has none yet: it is new, or its creation was cut off. Settings may apply
/// only in the worktree, by its branch or its path, so its filters are looked up there.
async fn check_out(root: &Path) -> Result<(), String> {
    let entries = std::fs::read_dir(root).map_err(|error| error.to_string())?;
    match entries.take(2).count() {
        // Its `.git`.
        1 => git_in_worktree(root, &["reset", "--hard", "--quiet"])
            .await
            .map(drop),
        _ => Ok(()),
    }
}

/// git's message about a worktree that is on its list and not on the disk.
const DELETED: &str = "is a missing but already registered worktree";

/// Checks that the worktree belongs to the repository of `cwd`. The slot's directory may have changed since.
async fn check_same_repository(root: &Path, cwd: &Path) -> Result<(), String> {
    let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
    let (of_tree, of_cwd) = (git(root, &common).await?, git(cwd, &common).await?);
    if of_tree == of_cwd {
        return Ok(());
    }
    Err(format!(
        "the worktree {} belongs to {}: git worktree remove it, or give the slot another name",
        root.display(),
        of_tree.trim()
    ))
}

/// Removes the worktree of a removed slot, if nothing in it would be lost; the branch stays. If git refuses, the
/// worktree is kept, and the reason is returned.
pub async fn remove_if_clean(root: &Path) -> Result<(), String> {
    if !root.join(".git").exists() {
        return Ok(());
    }
    // Git itself would remove ignored files, for example a file with settings.
    let status = [
        "status",
        "--porcelain",
        "--ignored",
        "--ignore-submodules=all",
    ];
    let ignored = git_in_worktree(root, &status).await?;
    if ignored.lines().any(|line| line.starts_with("!!")) {
        return Err("it has files that git ignores".to_owned());
    }
    let path = root.display().to_string();
    git(root, &["worktree", "remove", &path]).await.map(drop)
}

/// Creates the directory above the worktrees of a repository; an existing one stays as it is.
fn make_private(directory: &Path) -> Result<(), String> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.mode(0o700).recursive(true).create(directory);
    made.map_err(|error| format!("{} can't be made: {error}", directory.display()))
}

/// Settings with which git runs no program that the repository names. The daemon is outside every slot: no policy
/// restricts what it runs.
const NOTHING_RUNS: [(&str, &str); 5] = [
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("diff.external", ""),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
];

/// Runs git without the repository's own programs: no hooks, no filters, no file system monitor, no external diff, and
/// no transport. So files that a filter would create, such as those of git-lfs, are as they are in the repository.
async fn git(at: &Path, words: &[&str]) -> Result<String, String> {
    let fixed = NOTHING_RUNS.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let mut settings = Vec::from(fixed);
    settings.extend(no_filters(at).await?);
    git_with(at, words, &settings).await
}

/// Runs git on the files of this worktree. The repository's `core.worktree` may name any other directory of the user,
/// and git would write there.
async fn git_in_worktree(root: &Path, words: &[&str]) -> Result<String, String> {
    git(root, &[&["--work-tree=."], words].concat()).await
}

/// The settings that switch off every configured filter.
async fn no_filters(at: &Path) -> Result<Vec<(String, String)>, String> {
    let words = [
        "config",
        "--null",
        "--name-only",
        "--get-regexp",
        r"^filter\.",
    ];
    // It exits with 1 if there is none; the next call reports a directory that is not a repository.
    let listed = git_with(at, &words, &[]).await.unwrap_or_default();
    let mut drivers: Vec<&str> = listed
        .split('\0')
        .filter_map(|key| Some(key.rsplit_once('.')?.0))
        .collect();
    drivers.sort_unstable();
    drivers.dedup();
    let off = |driver: &str| {
        ["smudge", "clean", "process"]
            .map(|key| (format!("{driver}.{key}"), String::new()))
            .into_iter()
            .chain([(format!("{driver}.required"), "false".to_owned())])
            .collect::<Vec<_>>()
    };
    Ok(drivers.into_iter().flat_map(off).collect())
}

/// The variables that git reads. Those of the daemon may name another repository, or programs to run.
fn of_git(names: impl Iterator<Item = OsString>) -> impl Iterator<Item = OsString> {
    names.filter(|name| name.as_encoded_bytes().starts_with(b"GIT_"))
}

async fn git_with(
    at: &Path,
    words: &[&str],
    settings: &[(String, String)],
) -> Result<String, String> {
    let mut command = Command::new("git");
    for variable in of_git(std::env::vars_os().map(|(name, _)| name)) {
        command.env_remove(variable);
    }
    command
        .arg("--no-pager")
        .arg("-C")
        .arg(at)
        .args(words)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_COUNT", settings.len().to_string())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for (index, (key, value)) in settings.iter().enumerate() {
        command
            .env(format!("GIT_CONFIG_KEY_{index}"), key)
            .env(format!("GIT_CONFIG_VALUE_{index}"), value);
    }
    let output = tokio::time::timeout(LONGEST, command.output())
        .await
        .map_err(|_| format!("git gave no answer within {} s", LONGEST.as_secs()))?
        .map_err(|error| format!("git can't be run: {}", headroom::why_not_made(&error)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn git_now(at: &Path, words: &[&str]) {
        let done = std::process::Command::new("git")
            .arg("-C")
            .arg(at)
            .args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(words)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    #[tokio::test]
    async fn a_worktree_is_made_once_and_its_changes_are_never_lost() {
        let dir = tempfile::tempdir().unwrap();
        let repo = dir.path().join("repo");
        fs::create_dir_all(repo.join("sub")).unwrap();
        assert!(
            ensure(&dir.path().join("w"), &repo, "a").await.is_err(),
            "no repository"
        );
        git_now(&repo, &["init", "-q"]);
        fs::write(repo.join("sub/file"), "one").unwrap();
        git_now(&repo, &["add", "."]);
        git_now(&repo, &["commit", "-qm", "first"]);
        let tree = root(dir.path(), "missiond", &repo.join("sub"), "a");
        assert_eq!(tree, dir.path().join("repo/a"));
        let tree = root(dir.path(), "night", &repo.join("sub"), "a");
        assert_eq!(tree, dir.path().join("repo@night/a"));
        assert_eq!(root_of(dir.path(), &tree.join("sub")), Some(tree.clone()));
        assert_eq!(root_of(dir.path(), &dir.path().join("repo")), None);
        assert_eq!(root_of(&tree, dir.path()), None);
        ensure(&tree, &repo.join("sub"), "a").await.unwrap();
        assert_eq!(cwd_in(&tree, &repo.join("sub")), tree.join("sub"));
        let file = tree.join("sub/file");
        assert_eq!(fs::read_to_string(&file).unwrap(), "one");
        let head = fs::read_to_string(repo.join(".git/worktrees/a/HEAD")).unwrap();
        assert_eq!(head.trim(), "ref: refs/heads/missiond/a");
        fs::write(&file, "two").unwrap();
        ensure(&tree, &repo.join("sub"), "a").await.unwrap();
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            "two",
            "it is left as it is"
        );
        assert!(remove_if_clean(&tree).await.is_err());
        assert!(file.exists(), "what was changed is kept");
        fs::write(&file, "one").unwrap();
        fs::write(repo.join(".git/info/exclude"), "*.env\n").unwrap();
        fs::write(tree.join("my.env"), "kept").unwrap();
        assert!(remove_if_clean(&tree).await.is_err());
        assert!(tree.join("my.env").exists(), "what is ignored is kept");
        fs::remove_file(tree.join("my.env")).unwrap();
        remove_if_clean(&tree).await.unwrap();
        assert!(!tree.exists());
        ensure(&tree, &repo, "a").await.unwrap();
        assert!(file.exists(), "the branch was kept and is used again");
    }

    fn repository(at: &Path) {
        fs::create_dir_all(at).unwrap();
        git_now(at, &["init", "-q"]);
        git_now(at, &["commit", "-q", "--allow-empty", "-m", "first"]);
    }

    #[tokio::test]
    async fn a_worktree_of_another_repository_or_a_branch_in_use_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let (one, two) = (dir.path().join("one"), dir.path().join("two"));
        repository(&one);
        repository(&two);
        let tree = dir.path().join("trees/a");
        ensure(&tree, &one, "a").await.unwrap();
        let refused = ensure(&tree, &two, "a").await.unwrap_err();
        assert!(refused.contains("one/.git"), "{refused}");
        // If it was deleted by hand, it is created again.
        fs::remove_dir_all(&tree).unwrap();
        ensure(&tree, &one, "a").await.unwrap();
        // A person has its branch checked out in another place.
        git_now(&two, &["checkout", "-qb", "missiond/a"]);
        fs::remove_dir_all(&tree).unwrap();
        let refused = ensure(&tree, &two, "a").await.unwrap_err();
        assert!(refused.contains("missiond/a"), "{refused}");
        assert!(!tree.exists());
    }

    /// Every program that the repository can name leaves a mark if it runs: at the creation of the worktree, at the
    /// check before its removal, and at the removal.
    #[tokio::test]
    async fn nothing_of_the_repository_runs() {
        let dir = tempfile::tempdir().unwrap();
        let (repo, tree) = (dir.path().join("repo"), dir.path().join("trees/a"));
        fs::create_dir(&repo).unwrap();
        git_now(&repo, &["init", "-q"]);
        fs::write(repo.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
        fs::write(repo.join("file"), "as it is\n").unwrap();
        fs::write(repo.join("last"), "as it is\n").unwrap();
        git_now(&repo, &["add", "."]);
        git_now(&repo, &["commit", "-qm", "first"]);
        let mark = dir.path().join("ran");
        let program = dir.path().join("evil");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        for hook in [
            "post-checkout",
            "post-index-change",
            "reference-transaction",
            "pre-commit",
        ] {
            std::os::unix::fs::symlink(&program, repo.join(".git/hooks").join(hook)).unwrap();
        }
        let evil = program.to_str().unwrap();
        for key in [
            "filter.evil.smudge",
            "filter.evil.clean",
            "filter.more.process",
            "filter.a=b.c.smudge",
            "core.fsmonitor",
            "diff.external",
            "diff.evil.textconv",
            "diff.evil.command",
            "core.sshCommand",
            "core.pager",
            "pager.status",
            "core.editor",
        ] {
            git_now(&repo, &["config", key, evil]);
        }
        git_now(&repo, &["config", "filter.evil.required", "true"]);
        // Settings that apply only in the worktree: by its branch, and by its path.
        let late = dir.path().join("late");
        fs::write(&late, format!("[filter \"late\"]\nsmudge = {evil}\n")).unwrap();
        for condition in ["onbranch:missiond/**", "gitdir:**/worktrees/**"] {
            let key = format!("includeIf.{condition}.path");
            git_now(&repo, &["config", &key, late.to_str().unwrap()]);
        }
        fs::write(
            repo.join(".git/info/attributes"),
            "other filter=a=b.c\nfile filter=more\nlast filter=late\n",
        )
        .unwrap();
        // The marks appear if a person runs git, which proves that their absence means something.
        fs::write(repo.join("other"), "x").unwrap();
        let _ = std::process::Command::new("git")
            .arg("-C")
            .arg(&repo)
            .args(["add", "other"])
            .output();
        let heard = fs::read_to_string(&mark).expect("the marks work");
        assert!(heard.contains("evil"), "{heard}");
        fs::remove_file(&mark).unwrap();

        ensure(&tree, &repo, "a").await.unwrap();
        let quiet = |what: &str| {
            assert!(
                !mark.exists(),
                "{what}: {}",
                fs::read_to_string(&mark).unwrap()
            );
        };
        quiet("making it");
        for file in ["file", "last"] {
            assert_eq!(fs::read_to_string(tree.join(file)).unwrap(), "as it is\n");
        }
        ensure(&tree, &repo, "a").await.unwrap();
        quiet("finding it");
        fs::remove_file(tree.join("file")).unwrap();
        ensure(&tree, &repo, "a").await.unwrap();
        assert!(!tree.join("file").exists(), "what was removed stays so");
        fs::write(tree.join("file"), "changed\n").unwrap();
        assert!(remove_if_clean(&tree).await.is_err());
        quiet("keeping it");
        fs::write(tree.join("file"), "as it is\n").unwrap();
        remove_if_clean(&tree).await.unwrap();
        quiet("removing it");
        assert!(!tree.exists());
    }

    /// The repository can name another directory as its work tree, for all of its worktrees.
    #[tokio::test]
    async fn a_directory_that_the_repository_names_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (repo, tree) = (dir.path().join("repo"), dir.path().join("trees/a"));
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        fs::write(home.join("file"), "of the user").unwrap();
        repository(&repo);
        fs::write(repo.join("file"), "of the repository").unwrap();
        git_now(&repo, &["add", "."]);
        git_now(&repo, &["commit", "-qm", "more"]);
        git_now(&repo, &["config", "extensions.worktreeConfig", "true"]);
        git_now(&repo, &["config", "core.worktree", home.to_str().unwrap()]);

        ensure(&tree, &repo, "a").await.unwrap();
        let read = |at: &Path| fs::read_to_string(at.join("file")).unwrap();
        assert_eq!(read(&home), "of the user");
        assert_eq!(read(&tree), "of the repository");
        fs::write(repo.join(".git/info/exclude"), "*.env\n").unwrap();
        fs::write(tree.join("my.env"), "kept").unwrap();
        assert!(
            remove_if_clean(&tree).await.is_err(),
            "it has ignored files"
        );
        assert_eq!(read(&tree), "of the repository");
    }

    /// Submodules and nested repositories have their own settings, which git would obey if it looks into them.
    #[tokio::test]
    async fn nothing_of_a_submodule_or_a_nested_repository_runs() {
        let dir = tempfile::tempdir().unwrap();
        let (repo, tree) = (dir.path().join("repo"), dir.path().join("trees/a"));
        let mark = dir.path().join("ran");
        let program = dir.path().join("evil");
        let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", mark.display());
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let hostile = |at: &Path| {
            for key in ["core.fsmonitor", "filter.evil.clean", "filter.evil.smudge"] {
                git_now(at, &["config", key, program.to_str().unwrap()]);
            }
            fs::write(at.join("file"), "changed").unwrap();
        };
        let with_file = |at: &Path| {
            repository(at);
            fs::write(at.join("file"), "one").unwrap();
            fs::write(at.join(".gitattributes"), "* filter=evil\n").unwrap();
            git_now(at, &["add", "."]);
            git_now(at, &["commit", "-qm", "more"]);
        };
        let library = dir.path().join("library");
        with_file(&library);
        repository(&repo);
        let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
        git_now(
            &repo,
            &[&add[..], &[library.to_str().unwrap(), "sub"]].concat(),
        );
        git_now(&repo, &["commit", "-qm", "with a submodule"]);
        hostile(&repo.join("sub"));

        ensure(&tree, &repo, "a").await.unwrap();
        assert!(tree.join("sub").read_dir().unwrap().next().is_none());
        let update = ["-c", "protocol.file.allow=always", "submodule", "update"];
        git_now(&tree, &[&update[..], &["-q", "--init"]].concat());
        hostile(&tree.join("sub"));
        with_file(&tree.join("nested"));
        hostile(&tree.join("nested"));
        // The marks appear if a person runs git.
        git_now(&tree.join("nested"), &["status"]);
        fs::remove_file(&mark).expect("the marks work");

        ensure(&tree, &repo, "a").await.unwrap();
        let kept = remove_if_clean(&tree).await;
        assert!(kept.is_err(), "nothing in it may be lost");
        assert!(tree.join("nested/file").exists());
        assert!(!mark.exists(), "{}", fs::read_to_string(&mark).unwrap());
    }

    #[test]
    fn no_variable_of_git_is_passed_on() {
        let names = ["PATH", "GIT_DIR", "GIT_CONFIG_PARAMETERS", "GITHUB_TOKEN"];
        let found: Vec<OsString> = of_git(names.map(OsString::from).into_iter()).collect();
        assert_eq!(found, ["GIT_DIR", "GIT_CONFIG_PARAMETERS"]);
    }
}
