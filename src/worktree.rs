//! A git worktree and a branch of its own for a slot. It is made once, used again, and never removed by force.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;

/// A checkout of a large repository takes a while; what takes this long hangs.
const LONGEST: Duration = Duration::from_secs(300);

/// With these git would work on another repository than the one that is named.
const GIT_PLACES: [&str; 4] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
];

/// Where the worktree of a slot lies under the daemon's state.
pub fn root(state: &Path, slot: &str) -> PathBuf {
    state.join("worktrees").join(slot)
}

/// The directory in the worktree that `cwd` is in the repository.
pub fn cwd_in(root: &Path, cwd: &Path) -> PathBuf {
    let top = cwd.ancestors().find(|above| above.join(".git").exists());
    match top.and_then(|top| cwd.strip_prefix(top).ok()) {
        Some(below) if !below.as_os_str().is_empty() => root.join(below),
        _ => root.to_owned(),
    }
}

/// Makes the worktree at `root` for the repository in which `cwd` is, on the branch `missiond/<slot>`; one that
/// is there is left as it is, with whatever is in it.
pub async fn ensure(root: &Path, cwd: &Path, slot: &str) -> Result<(), String> {
    if root.join(".git").exists() {
        return check_same_repository(root, cwd).await;
    }
    git(cwd, &["rev-parse", "--verify", "HEAD"])
        .await
        .map_err(|error| {
            format!(
                "`worktree` needs a git repository with a commit in {}: {error}",
                cwd.display()
            )
        })?;
    let branch = format!("missiond/{slot}");
    let path = root.display().to_string();
    let reference = format!("refs/heads/{branch}");
    let known = git(cwd, &["rev-parse", "--verify", "--quiet", &reference]).await;
    let what = match known {
        Ok(_) => vec![path.as_str(), &branch],
        Err(_) => vec!["-b", &branch, &path],
    };
    let mut made = git(cwd, &[&["worktree", "add"], &what[..]].concat()).await;
    // One that somebody deleted by hand is still on git's list. No other safeguard is to be passed over, such as
    // that a branch is checked out only once.
    if made.as_ref().is_err_and(|error| error.contains(DELETED)) {
        made = git(cwd, &[&["worktree", "add", "-f"], &what[..]].concat()).await;
    }
    made.map(drop)
        .map_err(|error| format!("no worktree could be made at {path}: {error}"))
}

/// What git says of a worktree that is on its list and not on the disk.
const DELETED: &str = "is a missing but already registered worktree";

/// The slot may have been given another directory since.
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

/// Removes the worktree of a slot that is no more, if nothing in it would be lost; the branch stays. What git
/// refuses to remove is kept, and its reason comes back.
pub async fn remove_if_clean(root: &Path) -> Result<(), String> {
    if !root.join(".git").exists() {
        return Ok(());
    }
    // Git itself would remove what it was told to ignore: a file with settings, say.
    let ignored = git(root, &["status", "--porcelain", "--ignored"]).await?;
    if ignored.lines().any(|line| line.starts_with("!!")) {
        return Err("it has files that git ignores".to_owned());
    }
    let path = root.display().to_string();
    git(root, &["worktree", "remove", &path]).await.map(drop)
}

async fn git(at: &Path, words: &[&str]) -> Result<String, String> {
    let mut command = Command::new("git");
    command
        .arg("-C")
        .arg(at)
        .args(words)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    for place in GIT_PLACES {
        command.env_remove(place);
    }
    let output = tokio::time::timeout(LONGEST, command.output())
        .await
        .map_err(|_| format!("git gave no answer within {} s", LONGEST.as_secs()))?
        .map_err(|error| format!("git can't be run: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        let tree = root(dir.path(), "a");
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
        let tree = root(dir.path(), "a");
        ensure(&tree, &one, "a").await.unwrap();
        let refused = ensure(&tree, &two, "a").await.unwrap_err();
        assert!(refused.contains("one/.git"), "{refused}");
        // Deleted by hand, it is made again.
        fs::remove_dir_all(&tree).unwrap();
        ensure(&tree, &one, "a").await.unwrap();
        // A person has its branch open elsewhere.
        git_now(&two, &["checkout", "-qb", "missiond/a"]);
        fs::remove_dir_all(&tree).unwrap();
        let refused = ensure(&tree, &two, "a").await.unwrap_err();
        assert!(refused.contains("missiond/a"), "{refused}");
        assert!(!tree.exists());
    }
}
