//! Who can change the config, and what a fix may change.

use super::cli::{User, finding, stderr};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// Each command that would go by the config refuses it, names the file and tells the fix; with the fix all is good.
#[test]
fn a_config_that_others_can_change_is_refused_with_the_fix() {
    let user = User::new();
    user.missiond(&["init"]).assert().success();
    for (below, good, bad) in [
        ("slots.toml", 0o644, 0o666),
        ("policies/coder.toml", 0o644, 0o646),
        ("policies", 0o755, 0o777),
        ("", 0o755, 0o777),
    ] {
        let exposed = user.path(".config/missiond").join(below);
        // Without a slash behind the directory's own name.
        let exposed: std::path::PathBuf = exposed.components().collect();
        chmod(&exposed, bad);
        let fix = format!("chmod go-w {}", exposed.display());
        for command in [&["config", "check"][..], &["up"], &["run"]] {
            let told = stderr(&mut user.missiond(command), 2);
            assert!(
                told.contains("another user could change"),
                "{command:?}: {told}"
            );
            assert!(told.contains(&fix), "{command:?}: no `{fix}` in {told}");
        }
        let health = user.json(&["doctor"], 1);
        let config = finding(&health, "config");
        assert_eq!(config["health"], "fail", "{config}");
        let told = config["fix"].as_str().unwrap();
        assert!(told.lines().all(|line| line == fix), "{told}");
        chmod(&exposed, good);
        let health = user.json(&["doctor"], 0);
        assert_eq!(finding(&health, "access")["health"], "ok", "{health}");
    }
}

/// A directory above that is not missiond's own is named, and no command is told for it.
#[test]
fn no_fix_changes_a_directory_of_the_user() {
    let user = User::new();
    let home = user.path("");
    user.missiond(&["init", "../fleet"]).assert().success();
    let config = user.path("fleet/slots.toml");
    let config = config.to_str().unwrap();
    for exposed in [user.path("fleet"), home] {
        chmod(&exposed, 0o777);
        let told = stderr(&mut user.missiond(&["config", "check", "-c", config]), 2);
        assert!(
            told.contains("can be written by everybody (mode 0777)"),
            "{told}"
        );
        only_words(&told);
        let told = stderr(
            &mut user.missiond(&["init", "../fleet/new", "--cwd", "."]),
            4,
        );
        assert!(told.contains("can be written by everybody"), "{told}");
        only_words(&told);
        assert!(!user.path("fleet/new").exists());
        chmod(&exposed, 0o755);
    }
    // The link is in a safe place; what it leads to is not.
    fs::create_dir(user.path("open")).unwrap();
    fs::rename(user.path("fleet/slots.toml"), user.path("open/slots.toml")).unwrap();
    symlink(user.path("open/slots.toml"), user.path("fleet/slots.toml")).unwrap();
    user.missiond(&["config", "check", "-c", config])
        .assert()
        .success();
    chmod(&user.path("open"), 0o777);
    let told = stderr(&mut user.missiond(&["config", "check", "-c", config]), 2);
    assert!(told.contains(user.path("open").to_str().unwrap()), "{told}");
}

#[test]
fn a_pipe_in_the_place_of_the_config_stops_nobody() {
    let user = User::new();
    let pipe = user.path("project/pipe.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let told = stderr(
        &mut user.missiond(&["config", "check", "-c", "pipe.toml"]),
        2,
    );
    assert!(told.contains("not a regular file"), "{told}");
}

fn only_words(told: &str) {
    for command in ["chmod", "chown", "mkdir", "rm ", "mv ", "kill", "sudo"] {
        assert!(!told.contains(command), "`{command}` in: {told}");
    }
}

/// The daemon's places, set to directories that are used for other things too.
#[test]
fn places_that_are_not_missionds_own_are_left_as_they_are() {
    let user = User::new();
    let shared = user.path("shared");
    fs::create_dir(&shared).unwrap();
    chmod(&shared, 0o1777);
    let temporary = std::env::temp_dir();
    let rows = [
        format!("socket = \"{}/missiond-test.sock\"", temporary.display()),
        format!("socket = \"{}/m.sock\"", shared.display()),
        "socket = \"/var/run/missiond-test.sock\"".to_owned(),
        format!("logs = \"{}\"", temporary.display()),
        format!("logs = \"{}\"", shared.display()),
    ];
    let before = [&temporary, &shared].map(|dir| mode(dir));
    for row in rows {
        fs::write(
            user.path("project/slots.toml"),
            format!("[daemon]\n{row}\n\n[sessions]\n"),
        )
        .unwrap();
        let mut run = user.missiond(&["run", "-c", "slots.toml"]);
        let told = stderr(run.timeout(std::time::Duration::from_secs(60)), 1);
        only_words(&told);
        assert!(
            told.contains("in [daemon]") || told.contains("name the directory"),
            "{row}: {told}"
        );
        let health = doctor(&user);
        for check in health["checks"].as_array().unwrap() {
            only_words(check["fix"].as_str().unwrap_or_default());
        }
        assert_eq!(before, [&temporary, &shared].map(|dir| mode(dir)), "{row}");
    }
}

fn doctor(user: &User) -> Value {
    let output = user
        .missiond(&["doctor", "-c", "slots.toml", "--json"])
        .output();
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

/// A project, or a home directory, in which the logs are written stays as it was.
#[test]
fn a_log_directory_that_is_there_keeps_its_mode() {
    let user = User::new();
    let home = user.path("");
    for (logs, dir) in [(".", user.path("project")), ("~", home)] {
        chmod(&dir, 0o755);
        fs::write(
            user.path("project/slots.toml"),
            format!("[daemon]\nlogs = \"{logs}\"\n\n[sessions]\n"),
        )
        .unwrap();
        user.missiond(&["up", "-c", "slots.toml"])
            .assert()
            .success();
        user.missiond(&["down", "-c", "slots.toml"])
            .assert()
            .success();
        assert_eq!(mode(&dir), 0o755, "logs = {logs:?}");
        assert!(dir.join("audit.jsonl").exists() || dir.join("missiond.log").exists());
    }
}
