//! A process of the same user that writes to the slot's terminal: what it paints is held against what has come to the
//! gate.

use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::until;
use missiond::rehearsal::Step;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

#[test]
fn a_row_painted_over_a_dialog_is_not_put_before_a_person() {
    // Claude Code asks by itself, so that no mark in the dialog tells whose it is.
    let setup = Setup::new()
        .slot("coder")
        .policy("coder", "default = \"claude\"\n");
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let tool = Step::tool("Bash", json!({"command": "mkfifo pipe"}));
    daemon
        .endpoint
        .on("make it", vec![tool, Step::text("Made.")]);
    daemon.cmd(&["send", "coder", "make it"]).expect(5);
    let row = row_of(&daemon, "mkfifo pipe");
    let mut terminal = terminal_of(&daemon);
    let painted = format!("\x1b7\x1b[{row};1H\x1b[2K mkdir somewhere\x1b8");
    let mut paint = move || {
        let written = terminal.write_all(painted.as_bytes());
        written.expect("it can be written");
    };

    // Painted once, it is drawn over at once.
    paint();
    until("the painted words to come and go", || {
        let log = daemon.log("coder");
        let painted = log.find("dialog    Bash: mkdir somewhere")?;
        log[painted..].contains("Bash: mkfifo pipe").then_some(())
    });

    // Painted again and again, it is doubted; who answers is told of the call that waits.
    let painter = Painter::start(paint);
    let waiting = until("the doubt to be told", || {
        let told = daemon.log("coder").contains("DOUBTFUL");
        let waiting = daemon.json(&["pending"]).get_mut(0)?.take();
        (told && waiting["doubtful"].is_string()).then_some(waiting)
    });
    assert_eq!(waiting["waiting_calls"][0]["tool"], "Bash", "{waiting}");
    let call = &waiting["waiting_calls"][0]["input"]["command"];
    assert_eq!(call, "mkfifo pipe", "{waiting}");
    until("an answer to be refused", || {
        let answer = daemon.cmd(&["confirm", "coder", "yes"]);
        assert_ne!(answer.code, 0, "{answer}");
        answer.stderr.contains("doubtful").then_some(())
    });
    assert_eq!(keys(&daemon), 2, "those of the message");
    drop(painter);

    until("the doubt to go", || {
        daemon.status("coder")["doubtful"].is_null().then_some(())
    });
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(daemon.cwd("coder").join("pipe").exists());
    assert!(!daemon.cwd("coder").join("somewhere").exists());
}

/// Paints faster than anyone draws over it, until it is dropped.
struct Painter {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Painter {
    fn start(mut paint: impl FnMut() + Send + 'static) -> Painter {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                paint();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        Painter {
            over,
            thread: Some(thread),
        }
    }
}

impl Drop for Painter {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(ended.is_some_and(|ended| ended.is_ok()) || std::thread::panicking());
    }
}

/// The row of the dialog that shows a command and nothing else, counted from one.
fn row_of(daemon: &Daemon, command: &str) -> usize {
    let screen = daemon.json(&["screen", "coder"]);
    let rows = screen["lines"].as_array().expect("rows");
    let is_it = |row: &Value| row.as_str().is_some_and(|row| row.trim() == command);
    rows.iter().rposition(is_it).expect("the command") + 1
}

fn terminal_of(daemon: &Daemon) -> File {
    let pid = daemon.status("coder")["pid"].as_u64().expect("it runs");
    let terminal = std::fs::read_link(format!("/proc/{pid}/fd/0")).expect("a terminal");
    let file = OpenOptions::new().write(true).open(terminal);
    file.expect("it can be written")
}

fn keys(daemon: &Daemon) -> usize {
    let events = daemon.logged("coder.events.jsonl");
    events.matches("\"event\":\"key\"").count()
}
