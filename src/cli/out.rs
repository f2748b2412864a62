//! Standard output and the side remarks on standard error.

use crate::cli::failure::Failure;
use crate::cli::{reader, sanitise};
use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::stdio::stdout;
use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::BorrowedFd;

/// What names of slots are shown in; red is for what is wrong.
const COLOURS: [AnsiColor; 5] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::Yellow,
];
/// The columns of a name, so that lines of usual slots stand below each other.
const NAME: usize = 10;

#[derive(Debug, Clone, Copy)]
pub struct Out {
    pub json: bool,
    pub quiet: bool,
}

impl Out {
    /// A line of our own making, colours as the terminal and the flags allow.
    pub fn line(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        let mut line = Vec::new();
        let choice = AutoStream::choice(&io::stdout());
        writeln!(AutoStream::new(&mut line, choice), "{text}").map_err(unwritten)?;
        self.raw(&line)
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
        let shown = if io::stdout().is_terminal() {
            sanitise::text(text)
        } else {
            text.into()
        };
        let end = if shown.ends_with('\n') { "" } else { "\n" };
        self.raw(format!("{shown}{end}").as_bytes())
    }

    /// A line that belongs to a slot, behind its name; each name keeps its colour.
    pub fn beside(&self, slot: &str, line: &str) -> Result<(), Failure> {
        let colour = COLOURS[slot.bytes().map(usize::from).sum::<usize>() % COLOURS.len()];
        let style = Style::new().fg_color(Some(colour.into()));
        self.line(format!("{style}{slot:<NAME$} │{style:#} {line}"))
    }

    /// Bytes as they are: the caller has made them harmless, or was asked not to.
    pub fn raw(&self, bytes: &[u8]) -> Result<(), Failure> {
        // What others have printed comes before it.
        let before = io::stdout().lock().flush();
        before
            .and_then(|()| write_patiently(stdout(), bytes))
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

/// A program that shares the output may have made it non-blocking; then it is waited for until it takes more.
fn write_patiently(output: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(output, bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::AGAIN) => {
                // An interruption is as good as room: it is tried again.
                let _ = poll(&mut [PollFd::new(&output, PollFlags::OUT)], None);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn unwritten(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::BrokenPipe => reader::has_gone(),
        _ => Failure::failed(format!("cannot write to standard output: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_output_that_does_not_block_gets_everything() {
        let (output, mut reader) = UnixStream::pair().unwrap();
        output.set_nonblocking(true).unwrap();
        let sent = vec![7; 4 << 20];
        let expected = sent.clone();
        let writer = std::thread::spawn(move || write_patiently(output.as_fd(), &sent));
        let mut received = Vec::new();
        reader.read_to_end(&mut received).unwrap();
        writer.join().unwrap().unwrap();
        assert_eq!(received, expected);
    }

    #[test]
    fn a_reader_that_has_gone_is_told_apart() {
        let (output, reader) = UnixStream::pair().unwrap();
        drop(reader);
        let error = write_patiently(output.as_fd(), b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    }
}
