//! A program in a PTY, and the text that it has written so far. No terminal: words are looked for in the
//! bytes, without escape sequences and without spaces, since a screen is drawn with cursor movements.

use super::until;
use missiond::rehearsal::{Endpoint, Home};
use portable_pty::{Child, CommandBuilder, PtyPair, PtySize, native_pty_system};
use regex::Regex;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub struct Pty {
    written: Arc<Mutex<Vec<u8>>>,
    input: Box<dyn Write + Send>,
    child: Box<dyn Child + Send + Sync>,
    _pair: PtyPair,
}

impl Pty {
    /// Starts Claude Code in `cwd`, at home in `home`, against `endpoint`.
    pub fn claude(
        command: &[String],
        arguments: &[&str],
        cwd: &Path,
        home: &Home,
        endpoint: &Endpoint,
    ) -> Pty {
        let mut builder = CommandBuilder::from_argv(command.iter().map(Into::into).collect());
        builder.args(arguments);
        builder.cwd(cwd);
        builder.env_clear();
        for (name, value) in home.environment(&endpoint.url()) {
            builder.env(name, value);
        }
        Pty::start(builder)
    }

    fn start(builder: CommandBuilder) -> Pty {
        let size = PtySize {
            rows: 40,
            cols: 120,
            ..PtySize::default()
        };
        let pair = native_pty_system().openpty(size).expect("a PTY");
        let child = pair.slave.spawn_command(builder).expect("it starts");
        let mut reader = pair.master.try_clone_reader().expect("a reader");
        let input = pair.master.take_writer().expect("a writer");
        let written = Arc::new(Mutex::new(Vec::new()));
        let sink = written.clone();
        // Ends by itself when the child is gone and the PTY is closed.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let mut written = sink.lock().expect("no panic here");
                written.extend_from_slice(&buffer[..count]);
            }
        });
        Pty {
            written,
            input,
            child,
            _pair: pair,
        }
    }

    pub fn press(&mut self, keys: &str) {
        self.input.write_all(keys.as_bytes()).expect("it reads");
        self.input.flush().expect("it reads");
    }

    /// Presses `key` again and again, with time to act on each, until `fact`.
    pub fn press_until(&mut self, key: &str, fact: impl Fn() -> bool) {
        let mut pressed: Option<Instant> = None;
        until("what a key press should do", || {
            if fact() {
                return Some(());
            }
            if pressed.is_none_or(|then| then.elapsed() > Duration::from_secs(1)) {
                self.press(key);
                pressed = Some(Instant::now());
            }
            None
        });
    }

    /// Pastes a message, sees that it has arrived, and sends it.
    pub fn say(&mut self, message: &str) {
        let before = self.mark();
        self.press(&format!("\x1b[200~{message}\x1b[201~"));
        self.wait_for_after(before, message);
        self.press("\r");
    }

    /// Where the output stands now.
    pub fn mark(&self) -> usize {
        self.written.lock().expect("no panic there").len()
    }

    pub fn wait_for(&self, text: &str) {
        self.wait_for_after(0, text);
    }

    /// Waits until `text` has been written after `mark`.
    pub fn wait_for_after(&self, mark: usize, text: &str) {
        let wanted = squeezed(text);
        until(&format!("{text:?} on the terminal"), || {
            let written = self.written.lock().expect("no panic there");
            plain(&written[mark..]).contains(&wanted).then_some(())
        });
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let written = self.written.lock().map(|bytes| plain(&bytes));
            eprintln!("the terminal's text: {}", written.unwrap_or_default());
        }
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The printed characters alone.
fn plain(bytes: &[u8]) -> String {
    let escapes =
        Regex::new(r"\x1b(\[[0-9;:?<=>$]*[ -/]*[@-~]|[\]P_^][^\x07\x1b]*(\x07|\x1b\\)|.)")
            .expect("a valid pattern");
    squeezed(&escapes.replace_all(&String::from_utf8_lossy(bytes), ""))
}

fn squeezed(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .collect()
}
