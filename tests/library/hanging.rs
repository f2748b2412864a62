//! Rules that hang, on the real Claude Code: a policy of the program's own that does not return until the test says so.

use crate::support::PINNED;
use crate::support::claude_code::claude;
use crate::support::setup::{Setup, cwd};
use missiond::control::requests::{Confirm, Interrupt};
use missiond::core::model::{Fault, OneSlot};
use missiond::core::policy::{Ask, Decision, PermissionPolicy, Verdict};
use missiond::embed::{Options, Supervisor};
use missiond::lab::rehearsal::{Endpoint, Home, HomeOptions, Step};
use serde_json::json;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use tokio::sync::mpsc;

/// Says that it was asked, and then nothing until the latch is open.
struct Hangs {
    asked: mpsc::UnboundedSender<String>,
    latch: Arc<Latch>,
}

#[derive(Default)]
struct Latch {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    fn wait(&self) {
        let is_open = self.is_open.lock().expect("nobody panics");
        let waited = self.opened.wait_while(is_open, |is_open| !*is_open);
        drop(waited.expect("nobody panics"));
    }

    fn open(&self) {
        *self.is_open.lock().expect("nobody panics") = true;
        self.opened.notify_all();
    }
}

impl PermissionPolicy for Hangs {
    fn decide(&self, ask: &Ask) -> Verdict {
        let command = ask.input["command"].as_str().unwrap_or_default();
        if command.contains("slow") {
            self.asked.send(command.to_owned()).expect("the test waits");
            self.latch.wait();
        }
        Verdict {
            decision: Decision::Allow,
            rule: None,
            why: "this program allows everything".to_owned(),
        }
    }
}

/// A directory with the config of two slots.
pub fn lay_out(directory: &Path, home: &Home, endpoint: &Endpoint, command: &[String]) {
    let setup = Setup::new().slot("a").slot("b");
    for slot in ["a", "b"] {
        let work = cwd(directory, slot);
        fs::create_dir_all(&work).expect("a directory");
        home.trust(&work).expect("it is written");
    }
    let text = setup.slots_toml(directory, command, &home.environment(&endpoint.url()));
    fs::write(directory.join("slots.toml"), text).expect("a file");
    fs::create_dir(directory.join("policies")).expect("a directory");
    for (role, text) in setup.policy_files() {
        fs::write(directory.join(format!("policies/{role}.toml")), text).expect("a file");
    }
}

pub async fn confirm_no(supervisor: &Supervisor) {
    let params = serde_json::from_value(json!({"slot": "a", "answer": "no"}));
    let confirmed = supervisor.call::<Confirm>(params.expect("they fit")).await;
    confirmed.expect("a no is always possible");
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_verdict_hangs_everything_else_answers_and_then_a_person_is_asked() {
    let Some(command) = claude(PINNED) else {
        return;
    };
    let directory = crate::directory();
    let root = directory.path().join("d");
    missiond::os::paths::ensure_private_dir(&root).expect("a directory");
    let endpoint = Endpoint::start().expect("an endpoint");
    let home = Home::create(&root, &HomeOptions::default()).expect("a home");
    lay_out(&root, &home, &endpoint, &command);
    let call = |name: &str| {
        let input = json!({"command": format!("touch {name}"), "description": "Makes a file"});
        vec![Step::tool("Bash", input), Step::text("It is done.")]
    };
    endpoint.on("Make the first", call("slow-1"));
    endpoint.on("Make the second", call("slow-2"));
    endpoint.on("Make the third", call("quick"));
    let (asked, mut was_asked) = mpsc::unbounded_channel();
    let latch = Arc::new(Latch::default());
    let policy = Hangs {
        asked,
        latch: latch.clone(),
    };
    let options = Options::in_directory(&root)
        .expect("a config")
        .program(env!("CARGO_BIN_EXE_missiond"));
    let supervisor = Supervisor::with_policy(options, policy)
        .await
        .expect("it starts");
    // None of these could answer if the slot's task or the runtime waited for the verdict: the latch is closed.
    let (sent, interrupted) = tokio::join!(supervisor.send("a", "Make the first"), async {
        assert_eq!(was_asked.recv().await.as_deref(), Some("touch slow-1"));
        let status = supervisor.status("a").await.expect("it answers");
        assert!(status.pid.is_some());
        let third = supervisor.send("b", "Make the third").await;
        assert_eq!(third.expect("the other slot works"), "It is done.");
        let slot = "a".to_owned();
        supervisor.call::<Interrupt>(OneSlot { slot }).await
    });
    interrupted.expect("it is interrupted");
    assert!(sent.is_err(), "{sent:?}");
    assert!(cwd(&root, "b").join("quick").exists());

    let late = supervisor.send("a", "Make the second").await;
    let error = late.expect_err("a person is asked");
    assert_eq!(error.fault, Fault::NeedsPerson, "{error}");
    let status = supervisor.status("a").await.expect("it answers");
    let why = status.waits_because.expect("it waits");
    assert!(why.contains("no verdict within"), "{why}");
    latch.open();
    confirm_no(&supervisor).await;
    for file in ["slow-1", "slow-2"] {
        assert!(
            !cwd(&root, "a").join(file).exists(),
            "{file} was not allowed"
        );
    }
    supervisor.shutdown().await.expect("it ends");
}
