//! What a person is told about each fault in slots.toml. A new case is a file in tests/config/faults and
//! its snapshot beside it.

#[path = "config/access.rs"]
mod access;
#[path = "config/cli.rs"]
mod cli;
#[path = "config/stacks.rs"]
mod stacks;

use missiond::config::{
    Config, ConfigChange, ConfigChanged, ConfigWatch, diff, load, load_at_home, watch,
};
use missiond::core::settings::{Gate, Kind, Restart};
use missiond::core::text::diagnostic::ConfigError;
use missiond::core::text::diagnostic::render;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
fn times_and_sizes_are_written_as_a_person_writes_them() {
    let desk = Desk::new(
        "[notify]\ncommand = [\"notify-send\"]\n\
         [defaults]\nrole = \"coder\"\ncwd = \".\"\nrestart_delay = \"2s\"\nmax_memory = \"2GiB\"\n\
         [[slot]]\nname = \"a\"\nrestart_delay = \"1m 30s\"\nstall_after = \"off\"\nversion = \"2.1.325\"\n\
         [[slot]]\nname = \"b\"\nmax_memory = \"off\"\n",
    );
    let config = desk.load().unwrap();
    assert_eq!(config.notify.command, ["notify-send"]);
    assert_eq!(config.notify.notify_after, Some(Duration::from_secs(60)));
    let (a, b) = (&config.slots[0].supervision, &config.slots[1].supervision);
    assert_eq!(a.restart_delay, Duration::from_secs(90));
    assert_eq!((a.stall_after, a.max_memory), (None, Some(2 << 30)));
    assert_eq!(
        a.version.map(|version| version.to_string()).as_deref(),
        Some("2.1.325")
    );
    assert_eq!(b.restart_delay, Duration::from_secs(2));
    assert_eq!((b.max_memory, b.version), (None, None));
    assert_eq!(b.stall_after, Some(Duration::from_secs(600)));
}

/// A usual value in `[defaults]` is for the slots whose work missiond can see.
#[test]
fn a_shell_slot_does_not_stop_at_rest_though_the_defaults_say_when() {
    let desk = Desk::new(
        "[defaults]\nrole = \"coder\"\ncwd = \".\"\nidle_stop = \"5m\"\n\
         [[slot]]\nname = \"a\"\n\
         [[slot]]\nname = \"b\"\nkind = \"shell\"\ncommand = [\"sh\"]\n",
    );
    let slots = desk.load().unwrap().slots;
    let idle_stop = |at: usize| slots[at].supervision.idle_stop;
    assert_eq!(idle_stop(0), Some(Duration::from_secs(300)));
    assert_eq!(idle_stop(1), None);
}

/// What `config show` prints is a configuration with the same meaning.
#[test]
fn the_settings_survive_being_written_out() {
    let desk = Desk::new(&slot(
        "a",
        "max_memory = \"1GB\"\nidle_stop = \"5m\"\nversion = \"2.1.325\"",
    ));
    let config = desk.load().unwrap();
    let shown = toml::to_string(&toml::Table::from_iter([(
        "slot".to_owned(),
        toml::Value::try_from(&config.slots).unwrap(),
    )]))
    .unwrap();
    fs::write(desk.path("slots.toml"), shown).unwrap();
    assert_eq!(desk.load().unwrap().slots, config.slots);
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
fn a_bad_policy_is_a_fault_of_the_configuration_and_told_once() {
    let desk = Desk::new(&(slot("a", "") + &slot("b", "cols = 1")));
    fs::write(desk.path("policies/coder.toml"), "default = \"allow\"\n").unwrap();
    let problems = desk.load().unwrap_err().problems;
    let files: Vec<&Path> = problems.iter().map(|found| found.file.as_path()).collect();
    assert_eq!(
        files,
        [desk.path("slots.toml"), desk.path("policies/coder.toml")]
    );
    assert_eq!(problems[1].line(), 1);
}

#[test]
fn a_missing_and_an_endless_file_are_named() {
    let missing = load(Path::new("no/such/slots.toml")).unwrap_err();
    let shown = missing.to_string();
    assert!(shown.contains("no/such/slots.toml"), "{shown}");
    assert!(shown.contains("missiond init"), "{shown}");
    let device = load(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(device.contains("not a regular file"), "{device}");
    let desk = Desk::new(&"#\n".repeat(600_000));
    let long = desk.load().unwrap_err().to_string();
    assert!(long.contains("longer than 1 MiB"), "{long}");
}

fn slot(name: &str, more: &str) -> String {
    format!("[[slot]]\nname = \"{name}\"\nrole = \"coder\"\ncwd = \".\"\n{more}\n")
}

#[test]
fn a_reload_is_told_slot_by_slot_and_key_by_key() {
    let desk = Desk::new(&(slot("kept", "") + &slot("changed", "") + &slot("gone", "")));
    let old = desk.load().unwrap();
    assert_eq!(diff(&old, &old), []);
    let new = slot("new", "") + &slot("changed", "cols = 90\nprompt = \"hi\"") + &slot("kept", "");
    fs::write(
        desk.path("slots.toml"),
        "[daemon]\nlogs = \"l\"\n".to_owned() + &new,
    )
    .unwrap();
    let changes = diff(&old, &desk.load().unwrap());
    let slot = |name: &str| name.to_owned();
    assert_eq!(
        changes,
        [
            ConfigChange::Daemon {
                keys: vec!["logs".into()]
            },
            ConfigChange::Added { slot: slot("new") },
            ConfigChange::Changed {
                slot: slot("changed"),
                keys: vec!["cols".into(), "prompt".into()]
            },
            ConfigChange::Removed { slot: slot("gone") },
        ]
    );
}

/// Far longer than any machine needs: only a fault reaches it.
const LONG: Duration = Duration::from_secs(30);

async fn next(watch: &mut ConfigWatch) -> ConfigChanged {
    let next = tokio::time::timeout(LONG, watch.changed()).await;
    next.expect("a change is told").expect("the watch lives")
}

#[tokio::test]
async fn changes_are_told_however_the_file_was_written() {
    let desk = Desk::new(&slot("a", ""));
    let mut watch = watch(&desk.load().unwrap()).unwrap();
    fs::write(desk.path("slots.toml"), slot("b", "")).unwrap();
    next(&mut watch).await;
    // As editors do it: another file, renamed over the old one.
    fs::write(desk.path(".slots.toml.new"), slot("c", "")).unwrap();
    fs::rename(desk.path(".slots.toml.new"), desk.path("slots.toml")).unwrap();
    next(&mut watch).await;
    fs::remove_file(desk.path("slots.toml")).unwrap();
    next(&mut watch).await;
    fs::write(desk.path("slots.toml"), slot("c", "")).unwrap();
    next(&mut watch).await;
    fs::write(desk.path("policies/coder.toml"), "default = \"deny\"").unwrap();
    next(&mut watch).await;
    fs::write(desk.path("policies/new.toml"), "").unwrap();
    next(&mut watch).await;
}

/// What was touched and not changed is followed by a change; only that one may be told.
#[tokio::test]
async fn the_same_content_is_no_change() {
    let desk = Desk::new(&slot("a", ""));
    let mut watch = watch(&desk.load().unwrap()).unwrap();
    fs::write(desk.path("slots.toml"), slot("a", "")).unwrap();
    fs::write(desk.path("notes.txt"), "beside it").unwrap();
    fs::write(desk.path("policies/.coder.toml.swp"), "x").unwrap();
    let untold = tokio::time::timeout(Duration::from_millis(600), watch.changed()).await;
    assert!(untold.is_err(), "told of {untold:?}");
    fs::write(desk.path("slots.toml"), slot("b", "")).unwrap();
    next(&mut watch).await;
}

#[tokio::test]
async fn a_linked_file_is_watched_where_it_lies() {
    let real = Desk::new(&slot("a", ""));
    let desk = Desk::new("");
    fs::remove_file(desk.path("slots.toml")).unwrap();
    std::os::unix::fs::symlink(real.path("slots.toml"), desk.path("slots.toml")).unwrap();
    let mut watch = watch(&desk.load().unwrap()).unwrap();
    fs::write(real.path("slots.toml"), slot("b", "")).unwrap();
    next(&mut watch).await;
}

/// Pieces of which a file may be made, in any order: most are wrong somewhere.
const PIECES: &[&str] = &[
    "[daemon]\n",
    "[defaults]\n",
    "[[slot]]\n",
    "[slot]\n",
    "name = ",
    "role = ",
    "cwd = ",
    "env = ",
    "command = ",
    "cols = ",
    "mode = ",
    "slot.x = ",
    "\"coder\"",
    "\".\"",
    "[\"a\", 1]",
    "{ \"é=\" = 1 }",
    "-5",
    "0x_f",
    "1e9",
    "2026-01-01",
    "'''",
    "\"\"\"",
    "\n",
    "=",
    "]",
    "é",
    "\u{0}",
    "\r\n",
    "# ",
    "~x",
];

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config {
        failure_persistence: None,
        ..Default::default()
    })]

    /// Whatever stands in the file, the answer is a configuration or faults that can be shown.
    #[test]
    fn no_file_is_too_strange_to_be_told_about(
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..40)
    ) {
        let desk = Desk::new(&pieces.concat());
        if let Err(error) = desk.load() {
            assert!(!error.problems.is_empty());
            assert!(render(&error.problems, true).contains("slots.toml"));
            assert!(error.problems.iter().all(|problem| problem.to_json().is_object()));
        }
    }
}
