//! What comes between two steps of the daemon, with the daemon held there.

use super::shells::{ECHOES, echoes, shells, shells_with};
use super::survival::{at_a_dialog, every_key_is_audited, value};
use crate::support::daemon::{Daemon, missiond};
use crate::support::setup::Setup;
use crate::support::until;
use missiond::core::cast::{CastKind, Recording};
use missiond::core::claude::reading::Observer;
use missiond::core::terminal::Terminal;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A daemon that stops at a moment until it is let go.
pub struct Held {
    pipe: PathBuf,
    /// While this is open, the daemon waits.
    grip: Option<File>,
}

impl Held {
    /// Starts the daemon again, to be held at `moment`.
    pub fn restart(daemon: &mut Daemon, moment: &str) -> Held {
        let (held, program) = Held::crashed(daemon, moment);
        daemon.again_as(program);
        held
    }

    /// The same for a moment that comes before it answers.
    pub fn restart_and_arrive(daemon: &mut Daemon, moment: &str) -> Held {
        let (mut held, program) = Held::crashed(daemon, moment);
        daemon.begin_as(program);
        held.arrives();
        held
    }

    fn crashed(daemon: &mut Daemon, moment: &str) -> (Held, Command) {
        let pipe = daemon.root().join(format!("held-{moment}"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("a named pipe");
        daemon.crash();
        let mut program = missiond(daemon.root());
        program.env("MISSIOND_PAUSE", format!("{moment}:{}", pipe.display()));
        (Held { pipe, grip: None }, program)
    }

    /// Returns when the daemon has come to the moment.
    pub fn arrives(&mut self) {
        // Fails for as long as nobody reads.
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        self.grip = Some(until("the daemon to be held", || {
            let mut options = File::options();
            std::os::unix::fs::OpenOptionsExt::custom_flags(options.write(true), flags)
                .open(&self.pipe)
                .ok()
        }));
    }

    /// Lets it go on to the next time that it comes here.
    pub fn passes(&mut self) {
        self.grip = None;
        let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
        until("the daemon to go on", || {
            let mut options = File::options();
            let reader =
                std::os::unix::fs::OpenOptionsExt::custom_flags(options.write(true), flags)
                    .open(&self.pipe);
            reader.is_err().then_some(())
        });
    }

    /// Lets it go, now and when it comes here again.
    pub fn let_go(&mut self) {
        let _ = fs::remove_file(&self.pipe);
        self.grip = None;
    }
}

#[test]
fn killed_between_audit_and_key_leaves_an_entry_without_effect() {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    let made = at_a_dialog(&daemon);
    let dialog = daemon.wait_dialog("coder");

    for (moment, entries) in [("decided", 0), ("audited", 1)] {
        let mut held = Held::restart(&mut daemon, moment);
        daemon.wait_state("coder", "confirming");
        let before = keys_in_audit(&daemon);
        let confirm = daemon.spawn(&["confirm", "coder", "yes"]);
        held.arrives();
        // Else it would give its answer to the next daemon.
        confirm.kill();
        daemon.crash();
        assert_eq!(keys_in_audit(&daemon) - before, entries, "at {moment}");
        assert!(!made.exists(), "an effect at {moment}");
        daemon.again();
        let now = daemon.wait_dialog("coder");
        assert_eq!(now["id"], dialog["id"]);
    }
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert_eq!(fs::read_to_string(&made).expect("the tool ran"), "once\n");
    every_key_is_audited(&daemon, &["coder"]);
}

pub fn keys_in_audit(daemon: &Daemon) -> usize {
    let audit = daemon.logged("audit.jsonl");
    audit.matches("\"what\":\"key\"").count()
}

/// What Claude Code has drawn in a recording up to its first dialog.
pub fn up_to_a_dialog(scene: &str) -> String {
    let path = Path::new("tests/recordings/2.1.325-120x40").join(format!("{scene}.cast"));
    let file = File::open(path).expect("a recording");
    let recording = Recording::read(std::io::BufReader::new(file)).expect("a header");
    let mut terminal = Terminal::new(120, 40);
    let mut observer = Observer::new();
    let mut drawn = String::new();
    for event in recording {
        let event = event.expect("a whole event");
        let CastKind::Output(text) = event.what else {
            continue;
        };
        let due = terminal.quiet(event.at);
        if due.iter().any(|frame| observer.see(frame).dialog.is_some()) {
            return drawn;
        }
        for frame in terminal.feed(event.at, text.as_bytes()) {
            observer.see(&frame);
        }
        drawn.push_str(&text);
        if observer.observed().dialog.is_some() {
            return drawn;
        }
    }
    panic!("no dialog in {scene}");
}

#[test]
fn a_dialog_that_changes_before_the_key_gets_no_key() {
    let script = "[ \"$1\" = --version ] && exit; stty raw -echo; exec 3<&0; cat <&3 >keys & \
        cat first; while [ ! -e go ]; do sleep 0.02; done; printf '\\033c'; cat second; touch drawn; \
        while :; do sleep 1; done";
    let setup = Setup::new().slot_with("fake", "autostart = false");
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, script).expect("a file");
    let command = ["/bin/sh".to_owned(), file.path().display().to_string()];
    let mut daemon = Daemon::start_with(&setup, &command);
    // Answers to what a program asks its terminal are no keys.
    let answers =
        regex::Regex::new("\x1b(\\[[?>0-9;]*[a-zA-Z]|[P\\]_][^\x1b\x07]*(\x1b\\\\|\x07))")
            .expect("an expression");
    let confirm = ["confirm", "fake", "yes"];
    let keys = ["keys", "fake", "1", "--into-dialog"];
    let cases = [
        ("decided", &confirm[..], "became another one before it"),
        ("audited", &confirm, "became another one before it"),
        ("audited", &keys, "nothing was written"),
    ];
    for (moment, answer, why) in cases {
        let cwd = daemon.cwd("fake");
        for file in ["go", "drawn", "keys"] {
            let _ = fs::remove_file(cwd.join(file));
        }
        fs::write(cwd.join("first"), up_to_a_dialog("bash_allow")).expect("a file");
        fs::write(cwd.join("second"), up_to_a_dialog("fetch")).expect("a file");
        let mut held = Held::restart(&mut daemon, moment);
        daemon.cmd(&["start", "fake"]).expect(0);
        let seen = daemon.wait_dialog("fake");
        let answer = daemon.spawn(answer);
        held.arrives();
        fs::write(cwd.join("go"), "").expect("a file");
        until("the other dialog", || {
            cwd.join("drawn").exists().then_some(())
        });
        held.let_go();
        let refused = answer.end().expect(4);
        assert!(refused.stderr.contains(why), "{refused}");
        let now = daemon.wait_dialog("fake");
        assert_ne!(now["id"], seen["id"]);
        nothing_was_done_in_the_end(&daemon);
        let keys = fs::read_to_string(cwd.join("keys")).expect("what was typed");
        let typed = answers.replace_all(&keys, "");
        assert_eq!(typed, "", "in all: {keys:?}");
        let log = daemon.log("fake");
        assert!(
            log.contains("was withheld: the screen has changed"),
            "{log}"
        );
        daemon.cmd(&["stop", "fake"]).expect(0);
    }
}

/// A key that the audit has, and an answer to a dialog, are followed by an entry that says that they came to nothing.
#[track_caller]
fn nothing_was_done_in_the_end(daemon: &Daemon) {
    let audit = daemon.logged("audit.jsonl");
    let entries: Vec<Value> = audit.lines().map(value).collect();
    let last = |what: &str| entries.iter().rposition(|entry| entry["what"] == what);
    let (key, no_effect) = (last("key"), last("no_effect"));
    assert!(key.is_some() && key < no_effect, "{audit}");
    let pair = [key, no_effect].map(|at| &entries[at.unwrap_or_default()]);
    for field in ["key", "by", "uid", "pid", "via"] {
        assert_eq!(pair[0][field], pair[1][field], "{field}");
    }
    assert_eq!(pair[0]["by"], "person", "{audit}");
    let verdict = &entries[last("verdict").expect("a verdict")];
    assert_eq!(verdict["verdict"], "ask", "{verdict}");
    let why = verdict["why"].as_str().expect("a reason");
    assert!(why.starts_with("not answered: "), "{verdict}");
}

/// Nothing that is known stands on it, and nothing more comes: the silence itself has to tell.
#[test]
fn a_menu_that_nobody_knows_is_no_rest() {
    let script = "[ \"$1\" = --version ] && exit; stty raw -echo; cat box; \
        while [ ! -e go ]; do sleep 0.02; done; cat menu; while :; do sleep 1; done";
    let setup = Setup::new().slot_with("fake", "autostart = false");
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(&file, script).expect("a file");
    let command = ["/bin/sh".to_owned(), file.path().display().to_string()];
    let daemon = Daemon::start_with(&setup, &command);
    let cwd = daemon.cwd("fake");
    let rule = "─".repeat(120);
    let modes = "\x1b[?2004h\x1b[?1004h\x1b[?25l";
    let input_box = format!("{modes}{rule}\r\n❯ \r\n{rule}\r\n  ? for shortcuts");
    let menu = "\x1b[H\x1b[2J❯ /login\r\n\r\n Select login method:\r\n\r\n ❯ 1. An account\r\n   2. Another";
    fs::write(cwd.join("box"), input_box).expect("a file");
    fs::write(cwd.join("menu"), menu).expect("a file");
    daemon.cmd(&["start", "fake"]).expect(0);
    daemon.wait_state("fake", "idle");
    fs::write(cwd.join("go"), "").expect("a file");
    assert_eq!(daemon.wait_dialog("fake")["kind"], "other");
    assert_eq!(daemon.status("fake")["state"], "confirming");
    let refused = daemon.cmd(&["send", "fake", "--no-wait", "hello"]);
    refused.expect(4);
}

/// Whoever asked is told, and the slots go on.
#[test]
fn a_request_that_fails_inside_the_daemon_is_answered() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let pid = daemon.status("a")["pid"].clone();
    daemon.crash();
    let wrong = daemon.root().join("wrong");
    let mut program = missiond(daemon.root());
    program.env("MISSIOND_PAUSE", format!("asked:{}", wrong.display()));
    daemon.again_as(program);
    daemon.wait_state("a", "idle");
    let daemon_is = daemon.json(&["version"])["daemon"].clone();
    let socket = daemon_is["socket"].as_str().expect("a path").to_owned();
    fs::write(&wrong, "").expect("a file");
    for _ in 0..3 {
        // A socket alone is not asked for its config first.
        let failed = daemon.cmd(&["status", "--socket", &socket]).expect(1);
        assert!(
            failed.stderr.contains("the daemon failed at `status`"),
            "{failed}"
        );
    }
    fs::remove_file(&wrong).expect("it is there");
    echoes(&daemon, "after");
    assert_eq!(daemon.status("a")["pid"], pid);
}

#[test]
fn a_session_whose_daemon_was_killed_before_its_start_has_ended() {
    let mut daemon = shells(&["a"], ECHOES);
    daemon.wait_state("a", "idle");
    let mut held = Held::restart(&mut daemon, "before-start");
    let spawn = daemon.spawn(&["spawn", "--id", "one", "--", "sleep", "1000"]);
    held.arrives();
    daemon.crash();
    assert_ne!(spawn.end().code, 0);
    held.let_go();
    daemon.again();
    daemon
        .cmd(&["wait", "one", "--exit", "--timeout", "20s"])
        .expect(0);
    let info = daemon.json(&["info", "one"]);
    assert_eq!(info["is_alive"], false, "{info}");
    assert_eq!(
        info["last_error"], "it was never started: its daemon ended before",
        "{info}"
    );
    daemon.cmd(&["follow", "one"]).expect(0);
    daemon.cmd(&["close", "one"]).expect(0);
    daemon
        .cmd(&["spawn", "--id", "one", "--", "sleep", "1000"])
        .expect(0);
}

#[test]
fn a_stop_between_exit_and_restart_wins() {
    let mut daemon = shells_with(&["a"], "restart = \"always\"", "read x");
    daemon.wait_state("a", "idle");
    let mut held = Held::restart(&mut daemon, "before-start");
    daemon.wait_state("a", "idle");
    daemon.cmd(&["write", "a", "end\\r"]).expect(0);
    held.arrives();
    let stop = daemon.spawn(&["stop", "a"]);
    held.let_go();
    stop.end().expect(0);
    daemon.wait_state("a", "exited");
    let status = daemon.status("a");
    assert!(status["pid"].is_null(), "{status}");
}
