//! What a person sees while tasks run: on a terminal lines that are redrawn, else one line for each event.

use crate::cli::sanitise;
use crate::cli::table::age;
use crate::control::execute::News;
use crate::core::queue::plan::{Report, Run};
use anstyle::{AnsiColor, Style};
use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::time::Instant;

/// Running tasks that are shown at once: more would scroll.
const MAX_SHOWN: usize = 12;

/// Cells of the bar.
const BAR: usize = 24;

pub struct Progress {
    /// Redraws where it is a terminal, as wide as this.
    width: Option<usize>,
    quiet: bool,
    running: BTreeMap<usize, ShownProgress>,
    total: usize,
    ended: usize,
    failed: usize,
    /// Lines that were drawn last and are to be drawn over.
    drawn: usize,
}

struct ShownProgress {
    name: String,
    since: Instant,
    line: String,
}

impl Progress {
    /// On standard error, so that standard output has the result alone.
    pub fn new(total: usize, quiet: bool) -> Progress {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr());
        let columns = size.ok().map(|size| usize::from(size.ws_col));
        let on_terminal = std::io::stderr().is_terminal();
        Progress {
            width: columns.filter(|columns| on_terminal && *columns > 20),
            quiet,
            running: BTreeMap::new(),
            total,
            ended: 0,
            failed: 0,
            drawn: 0,
        }
    }

    pub fn tell(&mut self, run: &Run, place: usize, news: News) {
        let name = run.jobs()[place].name.as_str();
        match news {
            News::Started { attempt } => self.started(place, name, attempt),
            News::Line(line) => drop(self.now_shows(place, sanitise::one_line(line.trim()))),
            News::NeedsPerson(slot) => {
                let line = format!("{slot} needs you: missiond pending {slot}");
                if self.now_shows(place, line.clone()) && self.width.is_none() {
                    self.print(&format!("{name}: {line}"));
                }
            }
            News::Ended => {
                self.running.remove(&place);
                if let Some(report) = run.report(place) {
                    self.ended += 1;
                    self.failed += usize::from(!report.success);
                    self.print(&ended(name, report));
                }
            }
        }
        self.redraw();
    }

    fn started(&mut self, place: usize, name: &str, attempt: u32) {
        let (line, again) = match attempt {
            1 => (String::new(), ""),
            _ => (format!("attempt {attempt}"), " again"),
        };
        let shown = ShownProgress {
            name: name.to_owned(),
            since: Instant::now(),
            line,
        };
        self.running.insert(place, shown);
        if self.width.is_none() {
            self.print(&format!("{name}: started{again}"));
        }
    }

    /// Whether it is another line than before.
    fn now_shows(&mut self, place: usize, line: String) -> bool {
        let Some(shown) = self.running.get_mut(&place) else {
            return false;
        };
        let before = std::mem::replace(&mut shown.line, line);
        before != shown.line
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

    /// What runs now, and for how long: to be called once a second, also when nothing happens.
    pub fn redraw(&mut self) {
        let Some(width) = self.width.filter(|_| !self.quiet) else {
            return;
        };
        self.erase();
        let lines = self
            .running
            .values()
            .take(MAX_SHOWN)
            .map(ShownProgress::line);
        let lines: Vec<String> = lines
            .chain((self.ended < self.total).then(|| self.bar()))
            .map(|line| fitting(&line, width - 1) + "\n")
            .collect();
        self.drawn = lines.len();
        let _ = write!(anstream::stderr().lock(), "{}", lines.concat());
    }

    fn bar(&self) -> String {
        let (ended, total) = (self.ended, self.total);
        let full = BAR * ended / total.max(1);
        let bar = "━".repeat(full) + &"┄".repeat(BAR - full);
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(", {failed} not done"),
        };
        format!("  {bar} {ended} of {total}{failed}")
    }

    fn erase(&mut self) {
        if self.drawn > 0 {
            // From the first column, wherever a key that was pressed has left the cursor.
            let _ = write!(anstream::stderr().lock(), "\r\x1b[{}A\x1b[J", self.drawn);
            self.drawn = 0;
        }
    }
}

impl ShownProgress {
    fn line(&self) -> String {
        let seconds = self.since.elapsed().as_secs();
        let age = age(i64::try_from(seconds).unwrap_or(i64::MAX));
        format!("  {} {age} {}", self.name, self.line)
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
        Report { skipped: true, .. } => (AnsiColor::Yellow, not_done(report)),
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

/// One that is not to blame: it was never begun, or not let come to its end.
pub fn not_done(report: &Report) -> &'static str {
    match report.duration.is_zero() {
        true => "skipped",
        false => "stopped",
    }
}
