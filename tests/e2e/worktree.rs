//! A slot in a git worktree of its own.

use crate::support::daemon::{Daemon, missiond};
use crate::support::setup::Setup;
use missiond::lab::rehearsal::Step;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::{fs, str};

const POLICY: &str = "allow = [\"Read\", \"Edit(src/**)\"]";

fn git(at: &Path, words: &[&str]) -> String {
    let done = Command::new("git")
        .arg("-C")
        .arg(at)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(words)
        .output()
        .expect("git runs");
    assert!(done.status.success(), "{done:?}");
    str::from_utf8(&done.stdout).expect("text").to_owned()
}

/// What `Edit(src/**)` allows in the repository it allows in the worktree, without a question; what it does not allow,
/// and what is protected, is asked about.
#[test]
fn edits_in_a_worktree_go_by_the_rules() {
    let setup = Setup::new()
        .slot_with("coder", "worktree = true\nautostart = false")
        .policy("coder", POLICY);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    let repository = daemon.cwd("coder");
    fs::create_dir(repository.join("src")).expect("a directory");
    fs::write(repository.join("src/a.txt"), "one\n").expect("a file");
    git(&repository, &["init", "-q"]);
    git(&repository, &["add", "."]);
    git(&repository, &["commit", "-qm", "first"]);
    daemon.cmd(&["start", "coder"]).expect(0);
    // Claude Code trusts a worktree where it trusts the repository: nobody is asked.
    daemon.wait_state("coder", "idle");
    let status = daemon.status("coder");
    let tree = Path::new(status["cwd"].as_str().expect("a directory"));
    assert!(
        tree.ends_with("data/missiond/worktrees/coder/coder"),
        "{status}"
    );

    let file = tree.join("src/a.txt");
    let edit = json!({"file_path": file, "old_string": "one", "new_string": "two"});
    let steps = vec![
        Step::tool("Read", json!({"file_path": file})),
        Step::tool("Edit", edit),
        Step::text("It says two."),
    ];
    daemon.endpoint.on("edit it", steps);
    let answer = daemon.cmd(&["send", "coder", "edit it"]).expect(0);
    assert_eq!(answer.text(), "It says two.");
    assert_eq!(fs::read_to_string(&file).expect("a file"), "two\n");
    assert_eq!(
        fs::read_to_string(repository.join("src/a.txt")).expect("a file"),
        "one\n"
    );
    assert_eq!(git(tree, &["branch", "--show-current"]), "missiond/coder\n");

    let metadata = repository.join(".git/worktrees/coder/config.worktree");
    for (prompt, path) in [
        ("write beside", tree.join("beside.txt")),
        ("write the link to the repository", tree.join(".git")),
        ("write what git keeps", metadata.clone()),
        (
            "write the state",
            daemon.root().join("state/missiond/missiond/new.json"),
        ),
    ] {
        let before = fs::read(&path).ok();
        let write = Step::tool("Write", json!({"file_path": path, "content": "x"}));
        daemon.endpoint.on(prompt, vec![write, Step::text("Done.")]);
        daemon.cmd(&["send", "coder", prompt]).expect(5);
        daemon.cmd(&["confirm", "coder", "no"]).expect(0);
        daemon.wait_state("coder", "idle");
        assert_eq!(fs::read(&path).ok(), before, "{prompt}");
    }
}

/// A daemon that was started from a git hook, or under settings of a hostile directory, has variables that git obeys. None of
/// them counts when it makes a worktree.
#[test]
fn variables_of_git_do_not_reach_the_daemons_own_calls() {
    let keys = "kind = \"shell\"\nworktree = true\nautostart = false";
    let setup = Setup::new().slot_with("a", keys);
    let command = ["/bin/sh", "-c", "sleep 1000"].map(str::to_owned);
    let mut daemon = Daemon::start_with(&setup, &command);
    let (repository, other) = (daemon.cwd("a"), daemon.root().join("other"));
    let evil = daemon.root().join("evil");
    let ran = daemon.root().join("ran");
    let script = format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", ran.display());
    fs::write(&evil, script).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&evil, mode).expect("it is ours");
    fs::create_dir(&other).expect("a directory");
    for (at, text) in [(&repository, "mine\n"), (&other, "another\n")] {
        git(at, &["init", "-q"]);
        fs::write(at.join("file"), text).expect("a file");
        fs::write(at.join(".gitattributes"), "* filter=evil\n").expect("a file");
        git(at, &["add", "."]);
        git(at, &["commit", "-qm", "first"]);
    }
    daemon.cmd(&["down", "--yes"]).expect(0);
    let mut program = missiond(daemon.root());
    let evil = evil.display();
    let settings = format!("'core.fsmonitor={evil}' 'filter.evil.smudge={evil}'");
    program
        .env("GIT_DIR", other.join(".git"))
        .env("GIT_WORK_TREE", &other)
        .env("GIT_OBJECT_DIRECTORY", other.join(".git/objects"))
        .env("GIT_CONFIG_PARAMETERS", settings)
        .env("GIT_CONFIG_COUNT", "2")
        .env("GIT_CONFIG_KEY_0", "filter.evil.smudge")
        .env("GIT_CONFIG_VALUE_0", evil.to_string())
        .env("GIT_CONFIG_KEY_1", "core.hooksPath")
        .env("GIT_CONFIG_VALUE_1", daemon.root())
        .env("GIT_EXTERNAL_DIFF", evil.to_string())
        .env("GIT_TEMPLATE_DIR", &other)
        .env("GIT_TRACE", daemon.root().join("trace"));
    daemon.again_as(program);
    daemon.cmd(&["start", "a"]).expect(0);
    daemon.wait_state("a", "idle");
    let status = daemon.status("a");
    let tree = Path::new(status["cwd"].as_str().expect("a directory"));
    let file = fs::read_to_string(tree.join("file")).expect("a file");
    assert_eq!(file, "mine\n");
    assert!(!ran.exists(), "{:?}", fs::read_to_string(&ran));
    assert!(!daemon.root().join("trace").exists());
}
