//! What depends on files that are there: repositories in a directory, and names that a search would find.

use super::policy;
use missiond::core::policy::{Ask, Decision, decide};
use missiond::os::real_paths::RealPaths;
use std::fs;
use std::path::Path;

const RULES: &str = r#"
allow = ["Read", "Edit(src/**)", "Bash(cd *)", "Bash(git *)", "Bash(find *)", "Bash(cat *)", "Bash(wc *)", "Bash(sed *)",
    "Bash(echo *)"]
deny = ["Read(./.env.*)", "Read(./secrets/**)"]
"#;

fn on(cwd: &Path, command: &str) -> Decision {
    on_by(RULES, cwd, command)
}

fn on_by(rules: &str, cwd: &Path, command: &str) -> Decision {
    let ask = Ask::bash(command, cwd);
    decide(&policy(rules), &ask, &RealPaths::new(None)).decision
}

fn file(path: &Path) {
    fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
    fs::write(path, "").expect("a file");
}

#[test]
fn git_runs_in_a_directory_of_the_same_repository_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let cwd = directory.path();
    for name in [
        ".git/HEAD",
        "src/a.rs",
        "vendor/x/.git/HEAD",
        "bare/HEAD",
        "bare/objects/x",
        "bare/refs/x",
    ] {
        file(&cwd.join(name));
    }
    assert_eq!(on(cwd, "cd src && git status"), Decision::Allow);
    assert_eq!(on(cwd, "git -C src status"), Decision::Allow);
    for other in ["vendor/x", "bare"] {
        assert_eq!(
            on(cwd, &format!("cd {other} && git status")),
            Decision::Ask,
            "{other}"
        );
        assert_eq!(
            on(cwd, &format!("git -C {other} status")),
            Decision::Ask,
            "{other}"
        );
    }
    for brings in ["git clone x src/y", "cp -r ../x src/y"] {
        assert_ne!(
            on(cwd, &format!("{brings}; cd src && git status")),
            Decision::Allow,
            "{brings}"
        );
    }
}

#[test]
fn names_that_are_found_may_not_be_restricted_ones() {
    let directory = tempfile::tempdir().expect("a directory");
    let cwd = directory.path();
    file(&cwd.join("src/a.rs"));
    let all = "find . -name '*.rs' | xargs cat";
    let below = "find src -name '*.rs' | xargs cat";
    assert_eq!(on(cwd, all), Decision::Allow);
    assert_eq!(on(cwd, below), Decision::Allow);
    assert_eq!(on(cwd, "find . | xargs cat"), Decision::Ask);

    file(&cwd.join(".env.rs"));
    assert_eq!(on(cwd, all), Decision::Ask, "it would find .env.rs");
    assert_eq!(on(cwd, below), Decision::Allow);
    fs::remove_file(cwd.join(".env.rs")).expect("our file");

    file(&cwd.join("secrets/key.rs"));
    assert_eq!(
        on(cwd, all),
        Decision::Ask,
        "it would find what is in secrets"
    );
    assert_eq!(on(cwd, below), Decision::Allow);

    file(&cwd.join("src/a secrets/key.rs"));
    assert_eq!(
        on(cwd, below),
        Decision::Ask,
        "a space makes two names of one"
    );
    assert_eq!(
        on(cwd, "find src -name '*.rs' -print0 | xargs -0 cat"),
        Decision::Allow
    );
    assert_eq!(
        on(cwd, "find src -name '*.rs' | xargs wc -l"),
        Decision::Allow
    );
}

/// Only a search that prints names as they are hands over names of files below its directory.
#[test]
fn what_a_search_prints_may_be_other_than_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let cwd = directory.path();
    file(&cwd.join("src/a.rs"));
    file(&cwd.join("src/list.txt"));
    assert_eq!(
        on(cwd, "find src -type f | sort -u | xargs cat"),
        Decision::Allow
    );
    for command in [
        "find src -maxdepth 0 -printf '.env\\n' | xargs cat",
        "find src -maxdepth 0 -printf ' -o src/x.rs src/a.rs' | xargs sort",
        "find src -maxdepth 0 -printf ' --compress-program=sh' | xargs sort",
        "find src -fprintf src/a.rs x | xargs cat",
        "find src -ls | xargs cat",
        "find src -exec cat src/list.txt ';' | xargs cat",
        "find src -name '*.rs' | sort src/list.txt | xargs cat",
        "find src -name '*.rs' | grep -h '' src/list.txt | xargs cat",
        "find src -name '*.rs' | grep -o a.rs | xargs cat",
        "find src -name '*.rs' | grep -n a | xargs cat",
        "find src -name '*.rs' | head -c 4 | xargs cat",
        "find src -name '*.rs' | head -n1 src/list.txt | xargs cat",
        "find src -name '*.rs' | tail -v | xargs cat",
        "find src -name '*.rs' | uniq -c | xargs cat",
        "find src -name '*.rs' | uniq src/list.txt | xargs cat",
        "git diff --name-only --line-prefix=' .env ' | xargs cat",
        "git ls-files --format='.env' | xargs cat",
        "echo .env | xargs cat",
    ] {
        assert_eq!(on(cwd, command), Decision::Ask, "{command}");
    }
}

#[test]
fn links_are_not_read_by_what_is_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let cwd = directory.path();
    file(&cwd.join("src/a.rs"));
    file(&cwd.join("secrets/key"));
    let read = ["find src | xargs cat", "find src -exec cat {} +"];
    for command in read {
        assert_eq!(on(cwd, command), Decision::Allow, "{command}");
    }
    std::os::unix::fs::symlink("../secrets/key", cwd.join("src/link")).expect("a link");
    let read = read.iter().chain(&[
        "find src -type l | xargs cat",
        "find src -not -type f | xargs cat",
        "find src -name x -o -type f | xargs cat",
        "find src -name link -exec cat {} ';'",
    ]);
    for command in read {
        assert_eq!(on(cwd, command), Decision::Ask, "{command}");
    }
    for command in [
        "find src -type f | xargs cat",
        "find src -type f -exec cat {} +",
        "find src -type f \\( -name a.rs -o -name b.rs \\) | xargs cat",
        "find src | xargs wc -l",
    ] {
        assert_eq!(on(cwd, command), Decision::Allow, "{command}");
    }
}

#[test]
fn files_that_lead_elsewhere_are_not_changed() {
    let directory = tempfile::tempdir().expect("a directory");
    let cwd = directory.path();
    file(&cwd.join("src/a.rs"));
    std::os::unix::fs::symlink("/etc", cwd.join("src/etc")).expect("a link");
    std::os::unix::fs::symlink("/etc/passwd", cwd.join("src/b.rs")).expect("a link");
    assert_eq!(on(cwd, "sed -i s/a/b/ src/a.rs"), Decision::Allow);
    assert_eq!(on(cwd, "echo a > src/new.rs"), Decision::Allow);
    for command in [
        "sed -i s/a/b/ src/b.rs",
        "sed -i s/a/b/ src/*.rs",
        "sed -i s/a/b/ src/etc/x",
        "echo a > src/b.rs",
        "echo a > src/etc/x",
        "cat < src/etc/shadow",
    ] {
        assert_eq!(on(cwd, command), Decision::Ask, "{command}");
    }
}

/// The path behind a commit begins at the top of the repository, a glob of git may stand for a file that is there, and a word
/// that names no file may be a branch.
#[test]
fn what_git_has_stored_is_judged_by_what_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let top = directory.path();
    for name in [
        ".git/HEAD",
        "sub/src/a.rs",
        "sub/.env.local",
        "sub/secrets/old.key",
        "other/a.rs",
    ] {
        file(&top.join(name));
    }
    let cwd = top.join("sub");
    for (command, expected) in [
        ("git show HEAD:sub/.env.local", Decision::Ask),
        ("git show HEAD:sub/src/a.rs", Decision::Allow),
        ("git log -p -- ':/sub/secrets'", Decision::Ask),
        ("git log -p -- '*.local'", Decision::Ask),
        ("git log -p -- '*.key'", Decision::Ask),
        ("git log -p -- '*.rs'", Decision::Allow),
        ("git grep x src", Decision::Allow),
        ("git grep x some-branch", Decision::Ask),
        ("git checkout -- :/other", Decision::Ask),
        ("git diff -- ../other", Decision::Allow),
        ("git diff -- ../../elsewhere", Decision::Ask),
        ("git -C src diff -- ../.env.local", Decision::Ask),
    ] {
        assert_eq!(on(&cwd, command), expected, "{command}");
    }
}

/// A formatter changes files that there are, and only those that it knows; a directory takes along what is in it.
#[test]
fn what_a_command_changes_below_a_directory_is_judged_by_what_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let cwd = directory.path();
    for name in [
        ".github/workflows/ci.yml",
        "gen/api.py",
        "package.json",
        "new/config/prod/a.toml",
        "config/dev.toml",
        "a.txt",
    ] {
        file(&cwd.join(name));
    }
    let rules = r#"
allow = ["Bash(prettier *)", "Bash(black *)", "Bash(gofmt *)", "Bash(cargo *)", "Bash(mv *)", "Bash(git *)", "Bash(npx prettier *)"]
deny = ["Edit(.github/**)", "Edit(gen/**)", "Edit(./package.json)", "Edit(config/prod/**)"]
"#;
    for (command, expected) in [
        ("prettier --write .", Decision::Ask),
        ("npx prettier --write .", Decision::Ask),
        ("prettier --check .", Decision::Allow),
        ("prettier --write config", Decision::Allow),
        ("black .", Decision::Ask),
        ("black config", Decision::Allow),
        ("black --check .", Decision::Allow),
        ("gofmt -w .", Decision::Allow),
        ("cargo fmt", Decision::Allow),
        ("mv new/config .x", Decision::Allow),
        ("mv new/config other/", Decision::Allow),
        ("mv new/config config", Decision::Ask),
        ("git mv new/config config", Decision::Ask),
        ("mv a.txt config", Decision::Allow),
        ("mv config other", Decision::Ask),
    ] {
        assert_eq!(on_by(rules, cwd, command), expected, "{command}");
    }
}

/// A link to the slot's directory is one of the two ways to name it.
#[test]
fn neighbours_of_a_directory_that_a_link_names_are_outside() {
    let shared = tempfile::tempdir_in("/tmp").expect("a temporary directory");
    let apart = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary directory");
    let own = shared.path().join("proj");
    fs::create_dir(&own).expect("a directory");
    let link = apart.path().join("link");
    std::os::unix::fs::symlink(&own, &link).expect("a link");
    let rules = "allow = [\"Bash(touch *)\"]\n";
    let neighbour = format!("touch {}/outside", shared.path().display());
    for cwd in [&own, &link] {
        assert_eq!(
            on_by(rules, cwd, &neighbour),
            Decision::Ask,
            "{}",
            cwd.display()
        );
        assert_eq!(on_by(rules, cwd, "touch /tmp/f"), Decision::Ask);
        assert_eq!(on_by(rules, cwd, "touch f"), Decision::Allow);
    }
}
