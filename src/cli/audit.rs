use crate::audit::{self, Broken, Entry, Head, Verified};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::follow::{self, LINES_BEFORE_FOLLOWING, Which};
use crate::cli::tail::{Since, parse_since};
use crate::cli::{complete, sanitise, target};
use crate::control::protocol::NO_ANSWER;
use crate::files;
use crate::policy::Decision;
use crate::slot::machine::target_of;
use chrono::{DateTime, Local, SecondsFormat, Utc};
use regex::Regex;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Reads and checks the audit: every verdict, key and refusal.
///
/// The audit is audit.jsonl in the log directory, and audit.jsonl.1 and so on, to which it was rotated. It works with
/// the daemon down.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond audit verify                       is any line changed, missing or swapped?
  missiond audit verify --head 120:9f31…      and does it hold what the system log was told?
  missiond audit tail -f
  missiond audit grep --slot coder --verdict deny
  missiond audit grep --by person 'git push'")]
pub struct Audit {
    #[command(subcommand)]
    command: Command,
    /// The audit file, or the directory that it is in [default: that of the daemon]
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check the chain; the first wrong line is named, and the exit code is 1
    Verify(Verify),
    /// Show the last entries
    Tail(Tail),
    /// Show the entries that fit
    Grep(Grep),
}

#[derive(Debug, clap::Args)]
struct Verify {
    /// An entry that must stand in it, as the system log was told: NUMBER:HASH
    #[arg(long = "head", value_name = "HEAD")]
    heads: Vec<Head>,
}

#[derive(Debug, clap::Args)]
struct Tail {
    /// Go on with what is added
    #[arg(short, long)]
    follow: bool,
    /// The last N entries
    #[arg(short = 'n', long, value_name = "N", default_value_t = LINES_BEFORE_FOLLOWING)]
    lines: usize,
}

#[derive(Debug, clap::Args)]
struct Grep {
    /// A regular expression for the entry as it is shown, and for its whole input
    pattern: Option<Regex>,
    /// Only those of this slot
    #[arg(long, add = complete::slots())]
    slot: Option<String>,
    /// Only calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only what was decided so
    #[arg(long, value_parser = ["allow", "none", "ask", "deny"])]
    verdict: Option<String>,
    /// Only this kind of entry
    #[arg(long, value_parser = ["verdict", "key", "refused", "alarm"])]
    what: Option<String>,
    /// Only what was decided by them
    #[arg(long, value_parser = ["policy", "person", "missiond"])]
    by: Option<String>,
    /// Only what is newer: 10m, 2h, or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<DateTime<Utc>>,
}

impl Audit {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let file = file(context, self.file).await?;
        match self.command {
            Command::Verify(verify) => verify.run(context, &file),
            Command::Tail(tail) => tail.run(context, &file).await,
            Command::Grep(grep) => grep.run(context, &file).await,
        }
    }
}

/// The audit file that is meant.
pub async fn file(context: &Context, named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let place = match named {
        Some(place) => place,
        None => target::logs(context).await?,
    };
    let file = match place.is_dir() {
        true => place.join(audit::FILE),
        false => place,
    };
    if file.exists() {
        return Ok(file);
    }
    Err(
        Failure::usage(format!("there is no audit at {}", file.display()))
            .next("name the file, or the log directory that it is in"),
    )
}

impl Verify {
    fn run(self, context: &Context, file: &Path) -> Result<(), Failure> {
        let unreadable = |error| follow::unreadable(file, &error);
        match audit::verify_files(file, &self.heads).map_err(unreadable)? {
            Ok(verified) => good(context, file, &verified),
            Err(broken) => Err(bad(context, file, &broken)?),
        }
    }
}

fn good(context: &Context, file: &Path, verified: &Verified) -> Result<(), Failure> {
    let Verified { head, is_torn, .. } = verified;
    let first = verified.first.unwrap_or(1);
    let entries = head.seq + 1 - first;
    if context.out.json {
        return context.out.json(&json!({
            "ok": true, "file": file, "entries": entries, "first": first, "head": head.to_string(), "torn": is_torn,
        }));
    }
    let shown = file.display();
    context
        .out
        .done(format!("{shown}: good; {entries} entries, head {head}"))?;
    if first > 1 {
        context.out.note(format!(
            "it begins with entry {first}: older ones are no longer kept"
        ));
    }
    if *is_torn {
        context
            .out
            .note("its last line has no end, and counts for nothing");
    }
    Ok(())
}

fn bad(context: &Context, file: &Path, broken: &Broken) -> Result<Failure, Failure> {
    let file = match broken.rotations {
        0 => file.to_owned(),
        rotations => files::rotated(file, rotations),
    };
    if context.out.json {
        context.out.json(&json!({
            "ok": false, "file": file, "line": broken.line, "fault": broken.fault,
        }))?;
    }
    Ok(
        Failure::failed(format!("{}, {broken}", file.display())).next(
            "what stands before that line can be trusted as far as the system log confirms it; \
             from there on nothing can",
        ),
    )
}

impl Tail {
    async fn run(self, context: &Context, file: &Path) -> Result<(), Failure> {
        let which = Which {
            last: Some(self.lines),
            follow: self.follow,
        };
        follow::lines(file, which, |_| true, |line| print(context, line)).await
    }
}

impl Grep {
    async fn run(self, context: &Context, file: &Path) -> Result<(), Failure> {
        let mut since = Since::new(self.since);
        let keeps = |line: &str| since.keeps(line) && self.fits(line);
        let all = Which {
            last: None,
            follow: false,
        };
        follow::lines(file, all, keeps, |line| print(context, line)).await
    }

    fn fits(&self, line: &str) -> bool {
        let Ok(entry) = serde_json::from_str::<Entry>(line) else {
            return false;
        };
        let record = &entry.record;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|word| found == Some(word))
        };
        is(&self.slot, Some(&record.slot))
            && is(&self.tool, record.tool.as_deref())
            && is(&self.verdict, record.verdict.map(Decision::word))
            && is(&self.what, Some(record.what.word()))
            && is(&self.by, Some(&record.by))
            && self.matches(&entry)
    }

    fn matches(&self, entry: &Entry) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        pattern.is_match(&shown(entry)) || any_text(&entry.record.input, &|t| pattern.is_match(t))
    }
}

/// Whether any text in a value fits.
fn any_text(value: &Value, fits: &dyn Fn(&str) -> bool) -> bool {
    match value {
        Value::String(text) => fits(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, fits)),
        Value::Object(fields) => fields.values().any(|field| any_text(field, fits)),
        _ => false,
    }
}

/// A line that is no entry is shown as it is: hiding it would help whoever wrote it.
fn print(context: &Context, line: &str) -> Result<(), Failure> {
    let shown = match serde_json::from_str::<Entry>(line) {
        _ if context.out.json => sanitise::json(line),
        Ok(entry) => sanitise::one_line(&shown(&entry)),
        Err(_) => format!("NO ENTRY  {}", sanitise::one_line(line)),
    };
    context.out.raw(format!("{shown}\n").as_bytes())
}

/// An entry in a line.
fn shown(entry: &Entry) -> String {
    let record = &entry.record;
    let time: DateTime<Local> = entry.time.into();
    let time = time.to_rfc3339_opts(SecondsFormat::Millis, false);
    let what = match record.verdict {
        Some(_) if record.is_left_open() => NO_ANSWER,
        Some(verdict) if record.what == audit::Kind::Verdict => verdict.word(),
        _ => record.what.word(),
    };
    let subject = [
        record.key.clone(),
        record.tool.clone(),
        about(&record.input),
    ];
    let subject: Vec<String> = subject.into_iter().flatten().collect();
    let rule = record.rule.as_ref().map_or(String::new(), |rule| {
        format!(" [{} {}:{}]", rule.text, rule.file.display(), rule.line)
    });
    format!(
        "{time}  {seq}  {slot}  {what}  {subject} — {why}{rule} ({by})",
        seq = entry.seq,
        slot = record.slot,
        subject = subject.join(": "),
        why = record.why,
        by = deciders(record),
    )
}

/// What a call was about, in a line.
fn about(input: &Value) -> Option<String> {
    let method = || input.get("method").and_then(Value::as_str);
    target_of(input).or_else(|| method().map(str::to_owned))
}

fn deciders(record: &audit::Record) -> String {
    if record.is_left_open() {
        return format!("hook: {NO_ANSWER}");
    }
    let mut by = format!("by {}", record.by);
    if let Some(uid) = record.uid {
        by += &format!(", uid {uid}");
    }
    if let Some(pid) = record.pid {
        by += &format!(", pid {pid}");
    }
    if let Some(answer) = &record.answer {
        by += &format!(", hook: {answer}");
    }
    by
}
