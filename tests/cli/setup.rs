//! `setup` and `uninstall`: what they write, and that nothing else is changed or removed.

use crate::fake::{Home, Ran, Reply};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const UNIT: &str = ".config/systemd/user/missiond.service";
const BASH: &str = ".local/share/bash-completion/completions/missiond";

/// A home with programs of systemd that write down how they are called.
fn home() -> Home {
    let home = Home::new();
    for program in ["systemctl", "loginctl"] {
        let called = home.path("called");
        let script = format!(
            "#!/bin/sh\necho {program} \"$@\" >> '{}'\n",
            called.display()
        );
        let file = home.write(&format!("bin/{program}"), &script);
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o755)).unwrap();
    }
    home
}

fn run(home: &Home, args: &[&str]) -> Ran {
    let path = format!("{}:/usr/bin:/bin", home.path("bin").display());
    let mut command = home.command(args);
    command.env("PATH", path).env("SHELL", "/bin/bash");
    command.output().unwrap().into()
}

/// Every file of the home with its text.
fn files(home: &Home) -> BTreeMap<PathBuf, Vec<u8>> {
    fn add(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in directory.read_dir().unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => add(&path, found),
                false => drop(found.insert(path.clone(), std::fs::read(&path).unwrap_or_default())),
            }
        }
    }
    let mut found = BTreeMap::new();
    add(home.dir.path(), &mut found);
    found
}

fn called(home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(home.path("called")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_dry_run_and_a_missing_yes_write_nothing() {
    let home = home();
    let before = files(&home);
    let shown = run(&home, &["setup", "--dry-run"]).exits(0);
    assert!(
        shown.stderr.contains(UNIT) && shown.stderr.contains(BASH),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("  │ ExecStart="), "{shown:?}");
    let refused = run(&home, &["setup"]).exits(4);
    assert!(
        refused.stderr.contains("missiond setup --yes"),
        "{refused:?}"
    );
    assert_eq!(files(&home), before);
}

#[test]
fn what_setup_makes_works_once_and_uninstall_takes_it_away_again() {
    let home = home();
    let before = files(&home);
    run(&home, &["setup", "--yes", "--linger"]).exits(0);
    let unit = std::fs::read_to_string(home.path(UNIT)).unwrap();
    let program = env!("CARGO_BIN_EXE_missiond");
    assert!(
        unit.contains(&format!("ExecStart={program} run\n")),
        "{unit}"
    );
    let bin = home.path("bin");
    let path = format!("Environment=PATH={}:/usr/bin:/bin\n", bin.display());
    assert!(unit.contains(&path), "{unit}");
    let script = std::fs::read_to_string(home.path(BASH)).unwrap();
    assert!(
        script.contains("complete ") && script.contains(program),
        "{script}"
    );
    let enabled = [
        "systemctl --user daemon-reload",
        "systemctl --user enable missiond.service",
        "loginctl enable-linger",
    ];
    assert_eq!(called(&home), enabled);

    let after = files(&home);
    let again = run(&home, &["setup", "--yes", "--linger"]).exits(0);
    assert_eq!(again.stdout, "everything is set up already\n");
    assert_eq!(files(&home), after);

    let removed = run(&home, &["uninstall", "--yes", "--state"]).exits(0);
    assert!(
        removed
            .stdout
            .contains(&format!("removed {}", home.path(UNIT).display()))
    );
    let undone = [
        "systemctl --user disable missiond.service",
        "loginctl disable-linger",
        "systemctl --user daemon-reload",
    ];
    assert_eq!(called(&home)[enabled.len()..], undone);
    std::fs::remove_file(home.path("called")).unwrap();
    assert_eq!(files(&home), before);
}

#[test]
fn a_file_of_somebody_else_is_neither_changed_nor_removed() {
    let home = home();
    home.write(UNIT, "[Service]\nExecStart=/my/own\n");
    let before = files(&home);
    let refused = run(&home, &["setup", "--yes"]).exits(4);
    assert!(
        refused.stderr.contains("missiond has not written it"),
        "{refused:?}"
    );
    assert_eq!(files(&home), before);
    run(&home, &["uninstall", "--yes"]).exits(0);
    assert_eq!(files(&home), before);
}

#[test]
fn a_file_that_was_changed_since_is_kept() {
    let home = home();
    run(&home, &["setup", "--yes"]).exits(0);
    let mut unit = std::fs::read_to_string(home.path(UNIT)).unwrap();
    unit += "# mine\n";
    std::fs::write(home.path(UNIT), &unit).unwrap();
    run(&home, &["setup", "--yes"]).exits(4);
    run(&home, &["uninstall", "--yes"]).exits(0);
    assert_eq!(std::fs::read_to_string(home.path(UNIT)).unwrap(), unit);
    assert!(!home.path(BASH).exists());
}

#[test]
fn the_rest_goes_only_where_it_is_named_and_what_is_not_missionds_stays() {
    let home = home();
    let config = ".config/missiond";
    home.write(
        &format!("{config}/slots.toml"),
        "[daemon]\nlogs = \"logs\"\n",
    );
    home.write(
        &format!("{config}/policies/coder.toml"),
        "default = \"ask\"\n",
    );
    home.write(&format!("{config}/notes.md"), "mine\n");
    for log in [
        "coder.log",
        "coder.log.1",
        "coder.events.jsonl",
        "coder.cast",
        "audit.jsonl",
    ] {
        home.write(&format!("{config}/logs/{log}"), "x\n");
    }
    home.write(&format!("{config}/logs/thesis.tex"), "mine\n");
    let shown = run(&home, &["uninstall", "--dry-run"]).exits(0);
    assert!(shown.stderr.contains("logs: 5 files"), "{shown:?}");
    run(&home, &["uninstall", "--yes"]).exits(0);
    assert!(home.path(&format!("{config}/logs/coder.log.1")).exists());
    run(&home, &["uninstall", "--yes", "--logs", "--config-files"]).exits(0);
    let left: Vec<PathBuf> = files(&home).into_keys().collect();
    let left: Vec<&PathBuf> = left
        .iter()
        .filter(|it| it.starts_with(home.path(config)))
        .collect();
    let kept = ["logs/thesis.tex", "notes.md"].map(|it| home.path(config).join(it));
    assert_eq!(left, kept.iter().collect::<Vec<_>>());
}

#[test]
fn nothing_is_removed_under_a_running_daemon() {
    let home = home();
    run(&home, &["setup", "--yes"]).exits(0);
    let _requests = home.daemon("missiond", |_, _| Reply::Silence);
    let refused = run(&home, &["uninstall", "--yes"]).exits(4);
    assert!(refused.stderr.contains("missiond down"), "{refused:?}");
    assert!(home.path(UNIT).exists());
}
