//! Standard output and the side remarks on standard error.

use crate::cli::failure::Failure;
use crate::cli::{reader, sanitise};
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};

#[derive(Debug, Clone, Copy)]
pub struct Out {
    pub json: bool,
    pub quiet: bool,
}

impl Out {
    /// A line of our own making, colours as the terminal and the flags allow.
    pub fn line(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        writeln!(anstream::stdout().lock(), "{text}").map_err(unwritten)
    }

    /// A line that is only there to reassure: not with `--quiet`.
    pub fn done(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        self.line(text)
    }

    /// A slot's text: exact for a file or a pipe, harmless for a terminal.
    pub fn foreign(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let shown = if stdout.is_terminal() {
            sanitise::text(text)
        } else {
            text.into()
        };
        let end = if shown.ends_with('\n') { "" } else { "\n" };
        write!(stdout, "{shown}{end}")
            .and_then(|()| stdout.flush())
            .map_err(unwritten)
    }

    /// Bytes as they are: the caller has made them harmless, or was asked not to.
    pub fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(bytes)
            .and_then(|()| stdout.flush())
            .map_err(unwritten)
    }

    /// One JSON value on one line.
    pub fn json(&self, value: &impl Serialize) -> Result<(), Failure> {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::failed(format!("this answer has no JSON form: {error}")))?;
        self.raw(format!("{}\n", sanitise::json(&text)).as_bytes())
    }

    /// A remark beside the output; a person may be glad of it, a program is not told.
    pub fn note(&self, text: impl std::fmt::Display) {
        if !self.quiet && !self.json {
            self.aside(text);
        }
    }

    /// Text on standard error that belongs to the answer itself.
    pub fn aside(&self, text: impl std::fmt::Display) {
        // Where standard error is gone there is nobody left to tell.
        let _ = writeln!(anstream::stderr().lock(), "{text}");
    }
}

fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => reader::has_gone(),
        _ => Failure::failed(format!("cannot write to standard output: {error}")),
    }
}
