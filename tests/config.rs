//! What a person is told about each fault in slots.toml. A new case is a file in tests/config/faults and
//! its snapshot beside it.

use missiond::config::{Config, ConfigError, Gate, Kind, Restart, load, load_at_home};
use missiond::diagnostic::render;
use std::fs;
use std::path::{Path, PathBuf};

fn faults() -> Vec<PathBuf> {
    let entries = fs::read_dir("tests/config/faults").unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn each_fault_is_shown_with_its_place_and_what_would_be_right() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("config/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.add_filter(env!("CARGO_MANIFEST_DIR"), "[repo]");
    settings.bind(|| {
        for file in faults() {
            let name = file.file_stem().unwrap().to_str().unwrap();
            let error = load_at_home(&file, Some(Path::new("/home/me"))).unwrap_err();
            insta::assert_snapshot!(name, render(&error.problems, false));
        }
    });
}

/// Every problem points into the file: a person can go there.
#[test]
fn each_problem_has_a_line_in_json_too() {
    for file in faults() {
        for problem in load(&file).unwrap_err().problems {
            let json = problem.to_json();
            assert_eq!(json["file"], file.to_str().unwrap());
            assert!(json["line"].as_u64().unwrap() >= 1, "{json}");
            assert!(!json["error"].as_str().unwrap().is_empty(), "{json}");
            assert!(!json["detail"].as_str().unwrap().is_empty(), "{json}");
        }
    }
}

struct Desk {
    dir: tempfile::TempDir,
}

impl Desk {
    /// A directory with a policy for `coder` and this slots.toml.
    fn new(slots: &str) -> Desk {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("policies")).unwrap();
        fs::write(dir.path().join("policies/coder.toml"), "").unwrap();
        fs::write(dir.path().join("slots.toml"), slots).unwrap();
        Desk { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn load(&self) -> Result<Config, ConfigError> {
        load_at_home(&self.path("slots.toml"), Some(&self.path("home")))
    }
}

#[test]
fn a_short_slot_gets_the_documented_defaults() {
    let desk = Desk::new("[[slot]]\nname = \"a\"\nrole = \"coder\"\ncwd = \".\"\n");
    let config = desk.load().unwrap();
    assert_eq!(config.file, desk.path("slots.toml"));
    assert_eq!(config.daemon.name, "missiond");
    assert_eq!(config.daemon.logs, desk.path("logs"));
    assert_eq!(config.daemon.policies, desk.path("policies"));
    assert_eq!(config.daemon.socket, None);
    let slot = &config.slots[0];
    assert_eq!(slot.cwd, desk.dir.path());
    assert_eq!(slot.command, ["claude"]);
    assert_eq!((slot.cols, slot.rows), (120, 40));
    assert_eq!(slot.mode, "manual");
    assert_eq!((slot.kind, slot.gate), (Kind::Claude, Gate::Hook));
    assert_eq!(slot.restart, Restart::OnFailure);
    assert!(slot.autostart && slot.resume);
    assert!(!slot.project_settings && !slot.env_clear);
    assert_eq!((&slot.prompt, &slot.session), (&None, &None));
}

#[test]
fn a_slot_wins_over_the_defaults_and_env_is_joined_by_name() {
    let desk = Desk::new(
        "[defaults]\nrole = \"coder\"\ncwd = \".\"\ncols = 80\nrows = 24\nargs = [\"-x\"]\n\
         env = { A = \"1\", B = \"2\" }\nmode = \"default\"\n\
         [[slot]]\nname = \"a\"\ncols = 100\nargs = []\nenv = { B = \"3\" }\nrestart = \"always\"\n",
    );
    let slot = &desk.load().unwrap().slots[0];
    assert_eq!((slot.cols, slot.rows), (100, 24));
    assert!(slot.args.is_empty());
    assert_eq!(slot.mode, "manual", "`default` is the old word for it");
    assert_eq!(slot.restart, Restart::Always);
    let env: Vec<_> = slot.env.iter().map(|(k, v)| format!("{k}={v}")).collect();
    assert_eq!(env, ["A=1", "B=3"]);
}

#[test]
fn home_is_expanded_in_every_path() {
    let desk = Desk::new(
        "[daemon]\nlogs = \"~/logs\"\nsocket = \"~/m.sock\"\n\
         [[slot]]\nname = \"a\"\nrole = \"coder\"\ncwd = \"~\"\n",
    );
    fs::create_dir(desk.path("home")).unwrap();
    let config = desk.load().unwrap();
    assert_eq!(config.daemon.logs, desk.path("home/logs"));
    assert_eq!(config.daemon.socket, Some(desk.path("home/m.sock")));
    assert_eq!(config.slots[0].cwd, desk.path("home"));
}

#[test]
fn a_shell_slot_needs_no_policy() {
    let desk =
        Desk::new("[[slot]]\nname = \"a\"\nkind = \"shell\"\ncommand = [\"sh\"]\ncwd = \".\"\n");
    assert_eq!(desk.load().unwrap().slots[0].role, "shell");
}

#[test]
fn a_missing_and_an_endless_file_are_named() {
    let missing = load(Path::new("no/such/slots.toml")).unwrap_err();
    let shown = missing.to_string();
    assert!(shown.contains("no/such/slots.toml"), "{shown}");
    assert!(shown.contains("missiond init"), "{shown}");
    let endless = load(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(endless.contains("longer than 1 MiB"), "{endless}");
}
