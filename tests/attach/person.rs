//! A person: a pseudo-terminal with the client in it, somebody who types, and a screen to look at. It answers
//! questions as any terminal does.

use crate::support::daemon::{Daemon, missiond};
use crate::support::setup::Setup;
use crate::support::{PATIENCE, until};
use missiond::core::terminal::{At, Terminal};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, SlavePty, native_pty_system};
use std::io::{Read, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long somebody looks before a key is pressed again.
const MOMENT: Duration = Duration::from_secs(1);

/// A daemon with a shell in `sh`, 100 columns wide and 30 rows high.
pub fn shell() -> Daemon {
    shell_with("")
}

/// The same with more settings.
pub fn shell_with(settings: &str) -> Daemon {
    let keys = "kind = \"shell\"\ncols = 100\nrows = 30\nenv = { PS1 = \"$ \", TERM = \"xterm-256color\" }";
    let keys = format!("{keys}\n{settings}");
    let command = ["bash", "--norc", "--noprofile"].map(str::to_owned);
    let daemon = Daemon::start_with(&Setup::new().slot_with("sh", &keys), &command);
    daemon.wait_state("sh", "idle");
    // Not before it has asked for its first line.
    daemon
        .cmd(&["wait", "sh", "--output", "^\\$", "--timeout", "50s"])
        .expect(0);
    daemon
}

type Keyboard = Arc<Mutex<Box<dyn Write + Send>>>;

pub struct Person {
    terminal: Box<dyn MasterPty + Send>,
    /// Kept open, so that the terminal's settings can be looked at when the client is gone.
    _line: Box<dyn SlavePty + Send>,
    keyboard: Keyboard,
    window: Arc<Mutex<Window>>,
    client: Box<dyn Child + Send + Sync>,
    settings: String,
}

struct Window {
    terminal: Terminal,
    /// Everything that was ever written to it.
    raw: Vec<u8>,
}

impl Person {
    pub fn attach(daemon: &Daemon, arguments: &[&str], size: (u16, u16)) -> Person {
        Person::run(daemon, &[&["attach"], arguments].concat(), size)
    }

    /// Runs any command of missiond at a terminal.
    pub fn run(daemon: &Daemon, arguments: &[&str], size: (u16, u16)) -> Person {
        Person::run_with(daemon, arguments, size, &[])
    }

    /// The same with more in its environment.
    pub fn run_with(
        daemon: &Daemon,
        arguments: &[&str],
        (cols, rows): (u16, u16),
        environment: &[(&str, &str)],
    ) -> Person {
        let pair = native_pty_system()
            .openpty(pty_size(cols, rows))
            .expect("a pseudo-terminal");
        let settings = settings(pair.master.as_ref());
        let template = missiond(daemon.root());
        let mut command = CommandBuilder::new(template.get_program());
        command.args(arguments);
        command.cwd(daemon.root());
        command.env_clear();
        for (name, value) in template.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        command.env("TERM", "xterm-256color");
        for (name, value) in environment {
            command.env(name, value);
        }
        let client = pair.slave.spawn_command(command).expect("missiond runs");
        let keyboard = Arc::new(Mutex::new(pair.master.take_writer().expect("a keyboard")));
        let window = Arc::new(Mutex::new(Window {
            terminal: Terminal::new(cols.into(), rows.into()),
            raw: Vec::new(),
        }));
        let reader = pair.master.try_clone_reader().expect("a screen");
        let (looks, answers) = (Arc::clone(&window), Arc::clone(&keyboard));
        std::thread::spawn(move || look(reader, &looks, &answers));
        Person {
            terminal: pair.master,
            _line: pair.slave,
            keyboard,
            window,
            client,
            settings,
        }
    }

    pub fn types(&self, keys: impl AsRef<[u8]>) {
        let mut keyboard = self.keyboard.lock().expect("no panic there");
        keyboard.write_all(keys.as_ref()).expect("a terminal");
        keyboard.flush().expect("a terminal");
    }

    pub fn resizes(&self, cols: u16, rows: u16) {
        let mut window = self.window.lock().expect("no panic there");
        window.terminal.resize(At::ZERO, cols.into(), rows.into());
        self.terminal
            .resize(pty_size(cols, rows))
            .expect("a terminal");
    }

    /// The rows of the screen, down to the last that is not empty.
    pub fn screen(&self) -> Vec<String> {
        let screen = self
            .window
            .lock()
            .expect("no panic there")
            .terminal
            .screen();
        let mut rows: Vec<String> = screen
            .lines
            .into_iter()
            .map(|line| line.text.clone())
            .collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    pub fn is_on_alternate_screen(&self) -> bool {
        let window = self.window.lock().expect("no panic there");
        window.terminal.is_alternate()
    }

    pub fn raw(&self) -> Vec<u8> {
        self.window.lock().expect("no panic there").raw.clone()
    }

    #[track_caller]
    pub fn sees(&self, text: &str) {
        self.sees_that(text, |rows| rows.iter().any(|row| row.contains(text)));
    }

    /// Whether it goes from the screen within a moment.
    pub fn no_longer_sees(&self, text: &str) -> bool {
        let end = Instant::now() + MOMENT;
        let is_seen = || self.screen().iter().any(|row| row.contains(text));
        while is_seen() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        !is_seen()
    }

    #[track_caller]
    pub fn sees_that(&self, what: &str, is_so: impl Fn(&[String]) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_so(&self.screen()) {
            let screen = self.screen().join("\n");
            assert!(
                Instant::now() < end,
                "waited in vain for {what} on\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn pid(&self) -> i32 {
        let pid = self.client.process_id().expect("it was started");
        i32::try_from(pid).expect("a pid")
    }

    /// The exit code, once the client has ended; with the terminal as it was before.
    #[track_caller]
    pub fn ended(&mut self) -> u32 {
        let status = until("the end of the client", || {
            self.client.try_wait().expect("it is a child")
        });
        assert_eq!(
            settings(self.terminal.as_ref()),
            self.settings,
            "the terminal's settings"
        );
        status.exit_code()
    }

    /// The same, for an end with this message in the last rows.
    #[track_caller]
    pub fn ends(&mut self, code: u32, message: &str) {
        let ended = self.ended();
        self.sees(message);
        assert_eq!(ended, code, "{:?}", self.screen());
        assert!(!self.is_on_alternate_screen());
        let window = self.window.lock().expect("no panic there");
        let screen = window.terminal.screen();
        assert!(screen.cursor.visible);
        assert!(!screen.modes.bracketed_paste && !screen.modes.focus_reporting);
        // The shell's next prompt stands on a line of its own.
        let below = &screen.lines[screen.cursor.row..];
        assert!(below.iter().all(|line| line.text.is_empty()), "{screen:?}");
        assert_eq!(screen.cursor.col, 0);
    }
}

impl Drop for Person {
    fn drop(&mut self) {
        // Most have ended.
        let _ = self.client.kill();
        let _ = self.client.wait();
    }
}

fn look(mut reader: Box<dyn Read + Send>, window: &Mutex<Window>, keyboard: &Keyboard) {
    let mut buffer = [0; 8192];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        let replies = {
            let mut window = window.lock().expect("no panic there");
            window.raw.extend_from_slice(&buffer[..count]);
            window.terminal.feed(At::ZERO, &buffer[..count]);
            window.terminal.take_replies()
        };
        if !replies.is_empty() {
            let mut keyboard = keyboard.lock().expect("no panic there");
            // The client may have ended.
            let _ = keyboard.write_all(&replies);
        }
    }
}

fn pty_size(cols: u16, rows: u16) -> PtySize {
    PtySize {
        rows,
        cols,
        pixel_width: 0,
        pixel_height: 0,
    }
}

fn settings(terminal: &dyn MasterPty) -> String {
    format!("{:?}", terminal.get_termios())
}

/// Columns and rows of a slot.
pub fn size_of(daemon: &Daemon, slot: &str) -> (u64, u64) {
    let screen = daemon.json(&["screen", slot]);
    let number = |key: &str| screen[key].as_u64().expect("a number");
    (number("cols"), number("rows"))
}

#[track_caller]
pub fn gets_size(daemon: &Daemon, slot: &str, size: (u64, u64)) {
    until(&format!("{slot} to be {size:?}"), || {
        (size_of(daemon, slot) == size).then_some(())
    });
}
