//! `upgrade`: another program's daemon takes over, and no slot notices.

use crate::fake::{Home, Ran, text_of};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

struct Stage {
    home: Home,
    config: PathBuf,
}

impl Stage {
    fn new() -> Stage {
        let home = Home::new();
        home.write("policies/coder.toml", "default = \"ask\"\n");
        let slot = "role = \"coder\"\nkind = \"shell\"\ncwd = \".\"\ncommand = [\"cat\"]\n";
        let slots = ["first", "second"].map(|name| format!("[[slot]]\nname = \"{name}\"\n{slot}"));
        let config = home.write("slots.toml", &slots.concat());
        let stage = Stage { home, config };
        stage.run(&["up"]).exits(0);
        stage.run(&["wait", "--all", "--for", "idle"]).exits(0);
        stage
            .run(&["session", "spawn", "--id", "build", "--", "cat"])
            .exits(0);
        stage
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.home.command(args);
        command.env("MISSIOND_CONFIG", &self.config);
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    fn json(&self, args: &[&str]) -> Value {
        self.run(&[args, &["--json"]].concat()).exits(0).json()
    }

    /// The processes of the slots and the session.
    fn pids(&self) -> Vec<u64> {
        let (slots, sessions) = (self.json(&["status"]), self.json(&["session", "list"]));
        let all = [slots, sessions]
            .into_iter()
            .flat_map(|list| list.as_array().unwrap().clone());
        all.map(|one| one["pid"].as_u64().unwrap()).collect()
    }

    fn daemon(&self) -> u64 {
        self.json(&["version"])["daemon"]["pid"].as_u64().unwrap()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.command(&["down", "-q", "--yes"]).output();
    }
}

#[test]
fn another_programs_daemon_takes_over_what_runs_and_who_waits_goes_on_waiting() {
    let stage = Stage::new();
    let (pids, old) = (stage.pids(), stage.daemon());
    assert_eq!(pids.len(), 3);
    let waits = stage.command(&["wait", "first", "--for", "exited"]);
    let mut waits = { waits }.stdout(Stdio::piped()).spawn().unwrap();
    let program = stage.home.path("newer");
    std::fs::copy(env!("CARGO_BIN_EXE_missiond"), &program).unwrap();
    let mut newer = Command::new(&program);
    newer.arg("upgrade").env_clear().envs(
        stage
            .command(&[])
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))),
    );
    let ran = Ran::from(newer.current_dir(stage.home.dir.path()).output().unwrap()).exits(0);
    assert!(
        ran.stdout.contains("run on: build, first, second"),
        "{ran:?}"
    );
    let new = stage.daemon();
    assert_ne!(new, old);
    let runs = std::fs::read_link(format!("/proc/{new}/exe")).unwrap();
    assert_eq!(runs, program);
    assert_eq!(stage.pids(), pids);
    assert!(waits.try_wait().unwrap().is_none(), "it no longer waits");
    stage.run(&["stop", "first"]).exits(0);
    assert_eq!(waits.wait().unwrap().code(), Some(0));
}

#[test]
fn a_config_that_can_t_be_read_ends_nothing() {
    let stage = Stage::new();
    let (pids, old) = (stage.pids(), stage.daemon());
    std::fs::write(&stage.config, "nonsense = 1\n").unwrap();
    let ran = stage.run(&["upgrade"]).exits(2);
    assert!(ran.stderr.contains("nonsense"), "{ran:?}");
    let socket = text_of(&stage.home.socket("missiond"));
    let still = stage
        .home
        .run(&["version", "--socket", &socket, "--json"])
        .exits(0);
    assert_eq!(still.json()["daemon"]["pid"], old);
    let slots = stage
        .home
        .run(&["status", "--socket", &socket, "--json"])
        .exits(0)
        .json();
    assert_eq!(slots[0]["pid"].as_u64(), pids.first().copied());
    stage
        .home
        .run(&["down", "--yes", "--socket", &socket])
        .exits(0);
}

#[test]
fn without_a_daemon_there_is_nothing_to_take_over() {
    let home = Home::new();
    home.run(&["upgrade"]).exits(3);
}
