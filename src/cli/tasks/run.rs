use super::progress::{Progress, not_done};
use crate::cli::columns::{self, Columns};
use crate::cli::context::Context;
use crate::cli::failure::{Blame, Failure};
use crate::cli::{reach, sanitise};
use crate::config;
use crate::control::execute::{self, Settings, execute};
use crate::core::queue::file;
use crate::core::queue::plan::{Report, Run as Course, Work};
use crate::core::settings::Places;
use crate::core::text::diagnostic::ConfigError;
use crate::core::text::diagnostic::Source;
use crate::core::text::excerpt;
use comfy_table::{Cell, Color, Row};
use serde_json::{Map, Value, json};
use std::cell::RefCell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// What is shown of the output of a task that failed.
const SHOWN_OUTPUT: usize = 4_000;
/// The longest file that is read from standard input; longer ones are refused like files.
const MAX_FILE: u64 = 1 << 20;

const COLUMNS: Columns<'static> = Columns {
    header: &["TASK", "RESULT", "TIME", "EXIT", "BECAUSE"],
    right: &[2, 3],
    gives_way: 4,
};

/// Runs the tasks of a file side by side, and prints how each has ended.
///
/// A task is a list of commands, each in a terminal of its own, or a prompt for a slot or a role. One that fails
/// neither hides nor stops the others; those that need it are skipped. Ctrl-C ends all of them. What prompts were
/// answered stands before the table. The exit code is 1 where any has failed or was not done.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Example of a file:
  [[task]]
  name = \"build\"
  commands = [\"cargo build\"]

  [[task]]
  name = \"review\"
  prompt = \"Review the last commit.\"
  role = \"reviewer\"
  needs = [\"build\"]

A task may have cwd, env, timeout, needs and retries; `jobs = 4` at the top limits how many run at once.

Examples:
  missiond task run ci.toml
  missiond task run ci.toml --jobs 2 --fail-fast
  missiond task run - --json < ci.toml | jq -r '.results | to_entries[] | select(.value.success | not).key'")]
pub struct RunTasks {
    /// The file; `-` reads standard input
    file: PathBuf,
    /// How many run at once [default: as the file says, else the number of processors]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: Option<u16>,
    /// The first failure ends all the others
    #[arg(long)]
    fail_fast: bool,
}

impl RunTasks {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let plan = self.read(context)?;
        let processors = || std::thread::available_parallelism().map_or(2, usize::from);
        let limit = self
            .jobs
            .or(plan.limit)
            .map_or_else(processors, usize::from);
        let course = Course::new(plan.jobs, limit, self.fail_fast);
        // What can't be reached at all is one failure, not one for each task.
        drop(context.connect_for_sessions().await?);
        let settings = Settings {
            dial: reach::dial(context),
            environment: execute::environment_of_caller(),
            stop: until_interrupted()?,
        };
        let quiet = context.out.quiet || context.out.json;
        let progress = RefCell::new(Progress::new(course.jobs().len(), quiet));
        let course = execute(course, settings, |run, place, news| {
            progress.borrow_mut().tell(run, place, news)
        });
        let course = while_shown(&progress, course).await;
        progress.borrow_mut().finish();
        report(context, &course)
    }

    fn read(&self, context: &Context) -> Result<file::Plan, Failure> {
        let here = context.env.cwd.as_path();
        let (source, base) = if self.file == Path::new("-") {
            (from_stdin()?, here.to_owned())
        } else {
            let file = here.join(&self.file);
            let base = file.parent().unwrap_or(here).to_owned();
            let mut source = config::read_source(&file).map_err(|mut problem| {
                problem.help = None;
                Failure::from(ConfigError {
                    problems: vec![*problem],
                })
            })?;
            source.file = self.file.clone();
            (source, base)
        };
        let home = std::env::home_dir();
        let places = Places {
            base: &base,
            home: home.as_deref(),
        };
        Ok(file::parse(&source, places)?)
    }
}

/// The times go on while nothing happens.
async fn while_shown(progress: &RefCell<Progress>, course: impl Future<Output = Course>) -> Course {
    let mut second = tokio::time::interval(Duration::from_secs(1));
    tokio::pin!(course);
    loop {
        tokio::select! {
            course = &mut course => return course,
            _ = second.tick() => progress.borrow_mut().redraw(),
        }
    }
}

fn from_stdin() -> Result<Source, Failure> {
    let mut text = String::new();
    let mut stdin = std::io::stdin().lock().take(MAX_FILE + 1);
    let read = stdin.read_to_string(&mut text);
    read.map_err(|error| Failure::usage(format!("cannot read standard input: {error}")))?;
    if text.len() as u64 > MAX_FILE {
        return Err(Failure::usage(
            "the tasks on standard input are longer than 1 MiB",
        ));
    }
    Ok(Source::new("standard input", text))
}

/// Cancelled by Ctrl-C, or by whoever ends this process in a civil manner.
fn until_interrupted() -> Result<CancellationToken, Failure> {
    let stop = CancellationToken::new();
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ] {
        let mut signals = signal(kind)
            .map_err(|error| Failure::failed(format!("signals can't be heard: {error}")))?;
        let stop = stop.clone();
        tokio::spawn(async move {
            signals.recv().await;
            stop.cancel();
        });
    }
    Ok(stop)
}

fn report(context: &Context, course: &Course) -> Result<(), Failure> {
    let reports: Vec<(&str, &Report)> = course
        .jobs()
        .iter()
        .enumerate()
        .filter_map(|(place, job)| Some((job.name.as_str(), course.report(place)?)))
        .collect();
    let count = Count::of(&reports);
    if context.out.json {
        let words = count.words(course.stopped());
        context.out.json(&all_as_json(&reports, count, &words))?;
        // One object says all of it; the exit code says it once more.
        return match count.is_success() {
            true => Ok(()),
            false => Err(Failure::new(Blame::Command(1), words)),
        };
    } else {
        show_failures(context, &reports);
        show_answers(context, course)?;
        let rows = reports.iter().map(|(name, report)| row(name, report));
        context
            .out
            .line(COLUMNS.render(rows, columns::terminal_width()))?;
    }
    match count.is_success() {
        true => Ok(()),
        false => Err(Failure::failed(count.words(course.stopped()))),
    }
}

/// How many have failed, and how many were never done for another reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Count {
    all: usize,
    failed: usize,
    skipped: usize,
}

impl Count {
    fn of(reports: &[(&str, &Report)]) -> Count {
        let count = |wanted: fn(&Report) -> bool| {
            let reports = reports.iter().filter(|(_, report)| wanted(report));
            reports.count()
        };
        Count {
            all: reports.len(),
            failed: count(|report| !report.success && !report.skipped),
            skipped: count(|report| !report.success && report.skipped),
        }
    }

    fn is_success(self) -> bool {
        self.failed == 0 && self.skipped == 0
    }

    fn words(self, stopped: Option<&str>) -> String {
        let Count {
            all,
            failed,
            skipped,
        } = self;
        match (stopped, failed, skipped) {
            (Some("interrupted"), ..) => {
                format!(
                    "interrupted: {} of {all} tasks were not done",
                    failed + skipped
                )
            }
            (_, failed, 0) => format!("{failed} of {all} tasks failed"),
            (_, 0, skipped) => format!("{skipped} of {all} tasks were not done"),
            (_, failed, skipped) => {
                format!("{failed} of {all} tasks failed, {skipped} more were not done")
            }
        }
    }
}

/// `success` is of all together.
fn all_as_json(reports: &[(&str, &Report)], count: Count, words: &str) -> Value {
    let results: Map<String, Value> = reports
        .iter()
        .map(|(name, report)| ((*name).to_owned(), as_json(report)))
        .collect();
    json!({
        "success": count.is_success(),
        "failed": count.failed,
        "skipped": count.skipped,
        "error": (!count.is_success()).then_some(words),
        "results": results,
    })
}

/// What a prompt was answered is its result.
fn show_answers(context: &Context, course: &Course) -> Result<(), Failure> {
    for (place, job) in course.jobs().iter().enumerate() {
        let answered = course.report(place).filter(|report| report.success);
        if let (Work::Prompt { .. }, Some(report)) = (&job.work, answered) {
            let text = sanitise::text(report.output.trim_end());
            context.out.line(format!("--- {}\n{text}\n", job.name))?;
        }
    }
    Ok(())
}

/// The end of what they wrote is what one wants to see first.
fn show_failures(context: &Context, reports: &[(&str, &Report)]) {
    let failed = reports
        .iter()
        .filter(|(_, report)| !report.success && !report.output.trim().is_empty());
    for (name, report) in failed {
        let from = report.output.len().saturating_sub(SHOWN_OUTPUT);
        let skipped = excerpt::head(&report.output, from).len();
        let tail = sanitise::text(report.output[skipped..].trim_end());
        context.out.note(format!("--- {name}\n{tail}\n"));
    }
}

fn as_json(report: &Report) -> Value {
    json!({
        "success": report.success,
        "skipped": report.skipped,
        "exit_code": report.exit_code,
        "duration_ms": u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX),
        "output": report.output,
        "error": report.error,
    })
}

fn row(name: &str, report: &Report) -> Row {
    let result = match report {
        Report { success: true, .. } => Cell::new("done").fg(Color::Green),
        Report { skipped: true, .. } => Cell::new(not_done(report)).fg(Color::Yellow),
        _ => Cell::new("failed").fg(Color::Red),
    };
    let exit = report
        .exit_code
        .map_or("-".to_owned(), |code| code.to_string());
    Row::from([
        Cell::new(name),
        result,
        Cell::new(format!("{:.1}s", report.duration.as_secs_f64())),
        Cell::new(exit),
        Cell::new(sanitise::one_line(report.error.as_deref().unwrap_or("-"))),
    ])
}
