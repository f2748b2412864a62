//! What a person sees while tasks run: on a terminal lines that are redrawn, else one line for each event.

use crate::cli::sanitise;
use crate::cli::table::age;
use crate::tasks::execute::News;
use crate::tasks::plan::{Report, Run};
use anstyle::{AnsiColor, Style};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Running tasks that are shown at once: more would scroll.
const MAX_SHOWN: usize = 12;

pub struct Progress {
    /// Redraws where it is a terminal, as wide as this.
    width: Option<usize>,
    quiet: bool,
    running: BTreeMap<usize, Shown>,
    /// Lines that were drawn last and are to be drawn over.
    drawn: usize,
}

struct Shown {
    since: Instant,
    line: String,
}

impl Progress {
    /// On standard error, so that standard output has the result alone.
    pub fn new(quiet: bool) -> Progress {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
        let columns = size.ok().map(|size| usize::from(size.ws_col));
        let on_terminal = std::io::stderr().is_terminal();
        Progress {
            width: columns.filter(|columns| on_terminal && *columns > 20),
            quiet,
            running: BTreeMap::new(),
            drawn: 0,
        }
    }

    pub fn tell(&mut self, run: &Run, place: usize, news: News) {
        let name = run.jobs()[place].name.as_str();
        match news {
            News::Started { attempt } => {
                let line = match attempt {
                    1 => String::new(),
                    _ => format!("attempt {attempt}"),
                };
                let since = Instant::now();
                self.running.insert(place, Shown { since, line });
                if self.width.is_none() {
                    let again = if attempt == 1 { "" } else { " again" };
                    self.print(&format!("{name}: started{again}"));
                }
            }
            News::Line(line) => {
                if let Some(shown) = self.running.get_mut(&place) {
                    shown.line = sanitise::one_line(line.trim());
                }
            }
            News::NeedsPerson(slot) => {
                let line = format!("{slot} needs you: missiond pending {slot}");
                let known = self.running.insert(
                    place,
                    Shown {
                        since: Instant::now(),
                        line: line.clone(),
                    },
                );
                if self.width.is_none() && known.is_none_or(|shown| shown.line != line) {
                    self.print(&format!("{name}: {line}"));
                }
            }
            News::Ended => {
                self.running.remove(&place);
                if let Some(report) = run.report(place) {
                    self.print(&ended(name, report));
                }
            }
        }
        self.redraw(run);
    }

    /// Removes what is only of interest while it runs.
    pub fn finish(&mut self) {
        self.erase();
    }

    fn print(&mut self, line: &str) {
        if self.quiet {
            return;
        }
        self.erase();
        // Nobody left to read is nobody to tell.
        let _ = writeln!(anstream::stderr().lock(), "{line}");
    }

    fn redraw(&mut self, run: &Run) {
        let Some(width) = self.width.filter(|_| !self.quiet) else {
            return;
        };
        self.erase();
        let mut text = String::new();
        let now = Instant::now();
        for (place, shown) in self.running.iter().take(MAX_SHOWN) {
            let seconds = now.duration_since(shown.since).as_secs();
            let age = age(i64::try_from(seconds).unwrap_or(i64::MAX));
            let line = format!("  {} {age} {}", run.jobs()[*place].name, shown.line);
            text += &fitting(&line, width - 1);
            text.push('\n');
        }
        self.drawn = self.running.len().min(MAX_SHOWN);
        let _ = write!(anstream::stderr().lock(), "{text}");
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            let _ = write!(anstream::stderr().lock(), "\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }
}

/// The beginning of a line, as wide as the terminal.
fn fitting(line: &str, width: usize) -> String {
    use unicode_width::UnicodeWidthChar;
    let mut used = 0;
    line.chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

fn ended(name: &str, report: &Report) -> String {
    let (colour, word) = match report {
        Report { success: true, .. } => (AnsiColor::Green, "done"),
        Report { skipped: true, .. } => (AnsiColor::Yellow, "skipped"),
        _ => (AnsiColor::Red, "FAILED"),
    };
    let style = Style::new().fg_color(Some(colour.into()));
    let why = report
        .error
        .iter()
        .map(|why| format!(": {}", sanitise::one_line(why)));
    let took = format!("{:.1}s", report.duration.as_secs_f64());
    format!(
        "{name}: {style}{word}{style:#} in {took}{}",
        why.collect::<String>()
    )
}
