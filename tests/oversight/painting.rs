//! A process of the same user that writes to the slot's terminal: what it paints is held against what has come to the
//! gate.

use crate::support::claude_code::claude;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;
use crate::support::{PINNED, until};
use missiond::lab::rehearsal::Step;
use serde_json::{Value, json};
use std::fs::{self, File, OpenOptions};
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
    let of_the_message = keys(&daemon);
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
    assert_eq!(keys(&daemon), of_the_message, "no key");
    drop(painter);

    until("the doubt to go", || {
        daemon.status("coder")["doubtful"].is_null().then_some(())
    });
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(daemon.cwd("coder").join("pipe").exists());
    assert!(!daemon.cwd("coder").join("somewhere").exists());
}

/// Where the parts of a dialog stand, counted from one.
struct Rows {
    command: usize,
    yes: usize,
    no: usize,
}

impl Rows {
    fn of(daemon: &Daemon, command: &str) -> Rows {
        Rows {
            command: row_of(daemon, command),
            yes: row_that(daemon, |row| row.ends_with("1. Yes")),
            no: row_that(daemon, |row| row.ends_with(". No")),
        }
    }

    fn number_of_no(&self) -> usize {
        self.no - self.yes + 1
    }
}

/// Rows with what is painted over them.
type Painting = fn(&Rows) -> Vec<(usize, String)>;

/// What a process of the slot may paint over a dialog.
const PAINTINGS: [(&str, Painting); 6] = [
    ("another command", |rows| {
        vec![(rows.command, "   mkdir somewhere".to_owned())]
    }),
    ("the labels of yes and no, swapped", |rows| {
        let yes = format!("   {}. Yes", rows.number_of_no());
        vec![(rows.yes, " ❯ 1. No".to_owned()), (rows.no, yes)]
    }),
    ("the numbers of yes and no, swapped", |rows| {
        let yes = format!(" ❯ {}. Yes", rows.number_of_no());
        vec![(rows.yes, yes), (rows.no, "   1. No".to_owned())]
    }),
    ("no at every number", |rows| {
        let marked = |row| if row == rows.yes { '❯' } else { ' ' };
        let no = |row| (row, format!(" {} {}. No", marked(row), row - rows.yes + 1));
        (rows.yes..=rows.no).map(no).collect()
    }),
    ("an option more", |rows| {
        let more = format!("   {}. Yes", rows.number_of_no() + 1);
        vec![(rows.no + 1, more)]
    }),
    ("an option less", |rows| {
        let no = format!(" ❯ {}. No", rows.number_of_no());
        vec![(rows.yes, String::new()), (rows.no, no)]
    }),
];

/// The mark in a dialog tells which call it asks about, and nothing of its labels. Whatever is painted, and however often
/// the program draws again below it, a yes is refused and a no is Esc.
#[test]
fn whatever_is_painted_over_a_marked_dialog_a_no_is_a_no() {
    nothing_painted_is_approved(PINNED, &PAINTINGS);
}

#[test]
fn whatever_is_painted_over_a_dialog_of_an_older_version_a_no_is_a_no() {
    nothing_painted_is_approved("2.1.160", &PAINTINGS[..2]);
}

fn nothing_painted_is_approved(version: &str, paintings: &[(&str, Painting)]) {
    let Some(real) = claude(version) else { return };
    let setup = Setup::new().slot("coder").policy(
        "coder",
        "default = \"ask\"\nallow = [\"Bash(mkdir *)\"]\ndeny = [\"Bash(rm *)\"]\n",
    );
    let daemon = Daemon::start_with(&setup, &real);
    daemon.wait_state("coder", "idle");
    for (index, (name, painting)) in paintings.iter().enumerate() {
        println!("{name}");
        let pipe = format!("pipe{index}");
        declined_though_painted(&daemon, &pipe, painting);
    }
    // With nothing painted a yes is a yes.
    asks(&daemon, "pipe");
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(daemon.cwd("coder").join("pipe").exists());
    assert_eq!(
        verdicts(&daemon, "mkfifo pipe"),
        ["ask by policy", "allow by person"]
    );
}

/// Has Claude Code ask whether a pipe may be made.
fn asks(daemon: &Daemon, pipe: &str) {
    let tool = Step::tool("Bash", json!({"command": format!("mkfifo {pipe}")}));
    let prompt = format!("make {pipe}");
    daemon.endpoint.on(&prompt, vec![tool, Step::text("Made.")]);
    daemon.cmd(&["send", "coder", &prompt]).expect(5);
    until("the doubt before it to go", || {
        daemon.status("coder")["doubtful"].is_null().then_some(())
    });
    let dialog = daemon.status("coder")["dialog"].clone();
    let text = dialog["text"].as_str().expect("a text");
    assert!(text.contains("missiond ["), "it carries a mark: {dialog}");
}

/// Times that a yes is tried, over the time in which the program draws again.
pub(super) const ANSWERS: usize = 20;

fn declined_though_painted(daemon: &Daemon, pipe: &str, painting: &Painting) {
    asks(daemon, pipe);
    let command = format!("mkfifo {pipe}");
    let painted: String = painting(&Rows::of(daemon, &command))
        .iter()
        .map(|(row, text)| format!("\x1b7\x1b[{row};1H\x1b[2K{text}\x1b8"))
        .collect();
    let before = keys(daemon);
    let told_before = times_doubted(daemon);
    let mut terminal = terminal_of(daemon);
    let painter = Painter::start(move || {
        let written = terminal.write_all(painted.as_bytes());
        written.expect("it can be written");
    });
    until("the doubt to be told", || {
        (times_doubted(daemon) > told_before).then_some(())
    });
    // The program draws again for the doubt, and nothing is painted for a moment.
    for _ in 0..ANSWERS {
        daemon.cmd(&["confirm", "coder", "yes"]).expect(4);
    }
    assert_eq!(keys(daemon), before, "no key");
    let no = daemon.spawn(&["confirm", "coder", "no"]);
    until("the key of the no", || {
        (keys(daemon) > before).then_some(())
    });
    drop(painter);
    no.end().expect(0);
    daemon.wait_state("coder", "idle");
    assert_eq!(keys(daemon), before + 1, "Esc");
    assert!(!daemon.cwd("coder").join(pipe).exists());
    assert_eq!(
        verdicts(daemon, &command),
        ["ask by policy", "deny by person"]
    );
    // The model gets to know of it with the next message.
    let next = format!("after {pipe}");
    daemon.cmd(&["send", "coder", &next]).expect(0);
    assert!(daemon.endpoint.was_told("The tool use was rejected"));
}

/// Paints faster than anyone draws over it, until it is dropped. The pauses are long enough for what is painted to be read.
pub(super) struct Painter {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Painter {
    pub(super) fn start(mut paint: impl FnMut() + Send + 'static) -> Painter {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                paint();
                std::thread::sleep(Duration::from_millis(30));
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
    row_that(daemon, |row| row.trim() == command)
}

/// The last row of which this is true, counted from one.
pub(super) fn row_that(daemon: &Daemon, is_it: impl Fn(&str) -> bool) -> usize {
    let screen = daemon.json(&["screen", "coder"]);
    let rows = screen["lines"].as_array().expect("rows");
    let is_it = |row: &Value| row.as_str().is_some_and(&is_it);
    rows.iter().rposition(is_it).expect("the row") + 1
}

pub(super) fn times_doubted(daemon: &Daemon) -> usize {
    daemon.log("coder").matches("DOUBTFUL").count()
}

/// Who has decided what on a command, as the audit has it.
fn verdicts(daemon: &Daemon, command: &str) -> Vec<String> {
    let audit = daemon.logged("audit.jsonl");
    let entries = audit
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    entries
        .filter(|entry: &Value| entry["input"]["command"] == command && !entry["verdict"].is_null())
        .map(|entry| format!("{} by {}", entry["verdict"], entry["by"]).replace('"', ""))
        .collect()
}

pub(super) fn terminal_of(daemon: &Daemon) -> File {
    let pid = daemon.status("coder")["pid"].as_u64().expect("it runs");
    let terminal = std::fs::read_link(format!("/proc/{pid}/fd/0")).expect("a terminal");
    let file = OpenOptions::new().write(true).open(terminal);
    file.expect("it can be written")
}

pub(super) fn keys(daemon: &Daemon) -> usize {
    let events = daemon.logged("coder.events.jsonl");
    events.matches("\"event\":\"key\"").count()
}

/// An input box that is painted over a dialog takes no message: what is typed there would reach the dialog.
#[test]
fn nothing_is_typed_into_an_input_box_that_is_painted_over_a_dialog() {
    no_message_reaches_the_dialog(false);
}

/// Nor if Claude Code's record of the session is made to say the same: the gate has left a call to a person.
#[test]
fn nothing_is_typed_over_a_dialog_though_the_record_is_forged_too() {
    no_message_reaches_the_dialog(true);
}

fn no_message_reaches_the_dialog(forges: bool) {
    let Some(mut daemon) = Daemon::start(&Setup::new().slot("coder")) else {
        return;
    };
    daemon.wait_state("coder", "idle");
    let rest = daemon.json(&["screen", "coder", "--ansi"])["lines"].clone();
    let pid = daemon.status("coder")["pid"].clone();
    let record = daemon.home().join(format!(".claude/sessions/{pid}.json"));
    let at_rest = until("a record", || fs::read(&record).ok());
    let tool = Step::tool("Bash", json!({"command": "mkfifo pipe"}));
    daemon
        .endpoint
        .on("make it", vec![tool, Step::text("Made.")]);
    daemon.cmd(&["send", "coder", "make it"]).expect(5);
    let of_the_message = keys(&daemon);
    let asks = fs::read(&record).expect("a record");
    let mut paint = paint_screen(&daemon, &rest);
    let forged = forges.then(|| record.clone());
    let painter = Painter::start(move || {
        paint();
        if let Some(record) = &forged {
            fs::write(record, &at_rest).expect("it can be written");
        }
    });
    // The call is listed at once, before anybody doubts the screen.
    until("the call without its dialog", || {
        let waiting = daemon.json(&["pending"]).get_mut(0)?.take();
        let call = &waiting["waiting_calls"][0]["input"]["command"];
        let hidden = waiting["dialog"].is_null() && call == "mkfifo pipe";
        (hidden && waiting["doubtful"].is_null()).then_some(())
    });
    // Longer than a turn lasts about which the screen alone says that it is over.
    for after_a_kill in [false, true] {
        if after_a_kill {
            daemon.crash();
            daemon.again();
        }
        let sent = daemon.cmd(&["send", "coder", "go on with it", "--timeout", "45s"]);
        assert_ne!(sent.code, 0, "{sent}");
        assert_eq!(keys(&daemon), of_the_message, "{sent}");
    }
    drop(painter);
    if forges {
        fs::write(&record, &asks).expect("it can be written");
    }

    // The dialog comes back by itself.
    daemon.wait_dialog("coder");
    until("the doubt to go", || {
        daemon.status("coder")["doubtful"].is_null().then_some(())
    });
    assert!(!daemon.cwd("coder").join("pipe").exists());
    daemon.cmd(&["confirm", "coder", "yes"]).expect(0);
    daemon.wait_state("coder", "idle");
    assert!(daemon.cwd("coder").join("pipe").exists());
}

/// Paints these rows over the whole screen.
fn paint_screen(daemon: &Daemon, rows: &Value) -> impl FnMut() + Send + 'static {
    let mut terminal = terminal_of(daemon);
    let rows = rows.as_array().expect("rows").iter().zip(1..);
    let row = |(row, number): (&Value, usize)| {
        let row = row.as_str().expect("a row");
        format!("\x1b[{number};1H\x1b[0m\x1b[2K{row}")
    };
    let painted: String = rows.map(row).collect();
    let painted = format!("\x1b7{painted}\x1b[0m\x1b8");
    move || {
        let written = terminal.write_all(painted.as_bytes());
        written.expect("it can be written");
    }
}
