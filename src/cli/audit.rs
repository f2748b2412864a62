use crate::audit::{self, AuditEntry, BrokenChain, Head, Verified};
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::follow::{self, LINES_BEFORE_FOLLOWING, Which};
use crate::cli::tail::{Since, parse_since};
use crate::cli::{complete, logs, sanitise, target};
use crate::control::requests::Status;
use crate::core::machine::target_of;
use crate::core::model::{NO_ANSWER, Select};
use crate::core::policy::Decision;
use crate::os::{files, local_time};
use chrono::{DateTime, Utc};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::BTreeSet;
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
pub struct AuditArgs {
    #[command(subcommand)]
    command: AuditVerb,
    /// The audit file, or the directory that it is in [default: that of the daemon]
    #[arg(long, value_name = "FILE", global = true)]
    file: Option<PathBuf>,
}

#[derive(Debug, clap::Subcommand)]
enum AuditVerb {
    /// Check the chain; the first wrong line is named, and the exit code is 1
    Verify(Verify),
    /// Show the last entries
    Tail(AuditTail),
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
struct AuditTail {
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
    /// Only those of this slot, or of every slot of a @role
    #[arg(long, add = complete::slots())]
    slot: Option<String>,
    /// Only calls of this tool
    #[arg(long)]
    tool: Option<String>,
    /// Only what was decided so
    #[arg(long, value_parser = ["allow", "none", "ask", "deny"])]
    verdict: Option<String>,
    /// Only this kind of entry
    #[arg(long, value_parser = ["verdict", "key", "no_effect", "refused", "alarm", "hole"])]
    what: Option<String>,
    /// Only what was decided by them
    #[arg(long, value_parser = ["policy", "person", "missiond"])]
    by: Option<String>,
    /// Only what is newer: 10m, 2h, or a time such as 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<DateTime<Utc>>,
}

impl AuditArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let file = file(context, self.file).await?;
        match self.command {
            AuditVerb::Verify(verify) => verify.run(context, &file),
            AuditVerb::Tail(tail) => tail.run(context, &file).await,
            AuditVerb::Grep(grep) => grep.run(context, &file).await,
        }
    }
}

/// The audit file that is meant.
pub async fn file(context: &Context, named: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let file = match named {
        Some(place) if !place.is_dir() => place,
        Some(place) => place.join(audit::FILE),
        None => target::logs(context).await?.join(audit::FILE),
    };
    if file.exists() {
        return Ok(file);
    }
    Err(is_gone(context, &file).unwrap_or_else(|| {
        Failure::usage(format!("there is no audit at {}", file.display()))
            .next("name the file, or the log directory that it is in")
    }))
}

/// An audit was there, as the head says that is kept in the state directory.
fn is_gone(context: &Context, file: &Path) -> Option<Failure> {
    let states = context.env.state_dir().ok()?;
    let heads = audit::KeptHead::heads(&states, file).ok()?;
    let head = heads.iter().max_by_key(|head| head.seq)?;
    let (file, count) = (file.display(), head.seq);
    let text = format!("{file} is gone: it had {count} entries, the last one {head}");
    Some(Failure::failed(text).next(
        "look for it in your backups; a copy can be checked: missiond audit verify --file FILE --head HEAD",
    ))
}

impl Verify {
    fn run(self, context: &Context, file: &Path) -> Result<(), Failure> {
        let unreadable = |error| follow::unreadable(file, &error);
        // The heads first: what is written meanwhile comes behind them.
        let states = context.env.state_dir()?;
        let kept = audit::KeptHead::heads(&states, file)
            .map_err(|error| Failure::failed(error.to_string()))?;
        let is_kept = !kept.is_empty();
        let heads = [self.heads, kept].concat();
        match audit::verify_files(file, &heads).map_err(unreadable)? {
            Ok(verified) => good(context, file, &verified, is_kept),
            Err(broken) => Err(bad(context, file, &broken)?),
        }
    }
}

fn good(context: &Context, file: &Path, verified: &Verified, is_kept: bool) -> Result<(), Failure> {
    let Verified {
        head,
        is_torn,
        holes,
        ..
    } = verified;
    let lost: u64 = holes.iter().map(|hole| hole.lost).sum();
    let first = verified.first.unwrap_or(1);
    let entries = head.seq + 1 - first;
    if context.out.json {
        return context.out.json(&json!({
            "ok": true, "file": file, "entries": entries, "first": first, "head": head.to_string(), "torn": is_torn,
            "lost": lost, "holes": holes, "kept": is_kept,
        }));
    }
    let shown = file.display();
    let how = match holes.len() {
        0 => "good".to_owned(),
        count => format!("the chain is unbroken, with holes: {count}, lost entries: {lost}"),
    };
    context
        .out
        .done(format!("{shown}: {how}; {entries} entries, head {head}"))?;
    for hole in holes {
        context.out.note(in_words(hole));
    }
    if !is_kept {
        context.out.note(
            "no head of it is kept in the state directory: whether its end was cut can't be told",
        );
    }
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

/// A hole in a line.
fn in_words(hole: &audit::AuditGap) -> String {
    format!(
        "from {} to {} it could not be written: {} entries are lost, {} deeds were refused",
        local_time::clock(hole.from),
        local_time::clock(hole.to),
        hole.lost,
        hole.refused
    )
}

fn bad(context: &Context, file: &Path, broken: &BrokenChain) -> Result<Failure, Failure> {
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

impl AuditTail {
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
        let slots = self.slots(context).await?;
        let mut since = Since::new(self.since);
        let mut named = BTreeSet::new();
        let keeps = |line: &str| {
            let Ok(entry) = serde_json::from_str::<AuditEntry>(line) else {
                return false;
            };
            let is_wanted = slots.is_empty() || slots.contains(&entry.record.slot);
            let keeps = is_wanted && since.keeps(line) && self.fits(&entry);
            named.insert(entry.record.slot);
            keeps
        };
        let all = Which {
            last: None,
            follow: false,
        };
        follow::lines(file, all, keeps, |line| print(context, line)).await?;
        match slots.as_slice() {
            [slot] if !named.contains(slot) => is_known(context, file, slot, named).await,
            _ => Ok(()),
        }
    }

    /// The slots that are meant; none if all are.
    async fn slots(&self, context: &Context) -> Result<Vec<String>, Failure> {
        let Some(name) = &self.slot else {
            return Ok(Vec::new());
        };
        let slots = vec![name.clone()];
        if !name.starts_with('@') {
            return Ok(slots);
        }
        let of_role = context.ask::<Status>(Select { slots }).await?;
        Ok(of_role.into_iter().map(|status| status.slot).collect())
    }

    fn fits(&self, entry: &AuditEntry) -> bool {
        let record = &entry.record;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|word| found == Some(word))
        };
        is(&self.tool, record.call.tool.as_deref())
            && is(&self.verdict, verdict(record))
            && is(&self.what, Some(record.what.word()))
            && is(&self.by, Some(&record.actor.by))
            && self.matches(entry)
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        let Some(pattern) = &self.pattern else {
            return true;
        };
        pattern.is_match(&shown(entry))
            || any_text(&entry.record.call.input, &|t| pattern.is_match(t))
    }
}

/// Whether there is a slot of which the audit has no entry: one that has a log beside it, or that the daemon has. Any
/// other name is a mistake, which silence would hide: it looks as if nothing had been decided.
async fn is_known(
    context: &Context,
    file: &Path,
    slot: &str,
    audited: BTreeSet<String>,
) -> Result<(), Failure> {
    let mut known: Vec<String> = audited.into_iter().collect();
    known.extend(crate::lookback::logged(file.parent().unwrap_or(file)));
    if let Ok(running) = context.ask::<Status>(Select::default()).await {
        known.extend(running.into_iter().map(|status| status.slot));
    }
    if known.iter().any(|name| name == slot) {
        return Ok(());
    }
    let text = format!("no slot or session `{slot}` in {}", file.display());
    let next = match logs::instead(slot, known) {
        Some((meant, known)) => format!("{meant}the slots are: {known}"),
        None => "it has no entry of any slot".to_owned(),
    };
    Err(Failure::usage(text).next(next))
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
    let shown = match serde_json::from_str::<AuditEntry>(line) {
        _ if context.out.json => sanitise::json(line),
        Ok(entry) => sanitise::one_line(&shown(&entry)),
        Err(_) => format!("NO ENTRY  {}", sanitise::one_line(line)),
    };
    context.out.raw(format!("{shown}\n").as_bytes())
}

/// What was decided, in a word: `none` also for what the rules would have asked about and the hook has left to Claude Code.
fn verdict(record: &audit::Record) -> Option<&'static str> {
    match record.verdict {
        Some(_) if record.is_left_open() => Some(NO_ANSWER),
        verdict => verdict.map(Decision::word),
    }
}

/// An entry in a line.
pub fn shown(entry: &AuditEntry) -> String {
    let record = &entry.record;
    let time = local_time::clock(entry.time);
    let is_verdict = record.what == audit::RecordKind::Verdict;
    let what = verdict(record).filter(|word| is_verdict || *word == NO_ANSWER);
    let what = what.unwrap_or(record.what.word());
    let subject = [
        record.key.clone(),
        record.call.tool.clone(),
        about(&record.call.input),
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
    let mut by = format!("by {}", record.actor.by);
    if let Some(uid) = record.actor.uid {
        by += &format!(", uid {uid}");
    }
    if let Some(pid) = record.actor.pid {
        by += &format!(", pid {pid}");
    }
    if let Some(via) = &record.actor.via {
        by += &format!(", {via}");
    }
    if let Some(answer) = &record.answer {
        by += &format!(", hook: {answer}");
    }
    by
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        grep: Grep,
    }

    /// Whatever is looked for is what is shown, also for a call that the hook has left to Claude Code.
    #[test]
    fn a_verdict_is_found_by_the_word_that_is_shown() {
        for decision in Decision::ALL {
            for answer in [None, Some("none"), Some("ask")] {
                let entry = AuditEntry {
                    seq: 1,
                    time: Utc::now(),
                    record: audit::Record {
                        verdict: Some(decision),
                        answer: answer.map(str::to_owned),
                        ..audit::Record::verdict("coder", "Bash", &json!({"command": "x"}))
                    },
                    prev: String::new(),
                    hash: String::new(),
                };
                let word = shown(&entry);
                let word = word.split("  ").nth(3).unwrap();
                for wanted in ["allow", "none", "ask", "deny"] {
                    let grep = Line::try_parse_from(["grep", "--verdict", wanted]);
                    let found = grep
                        .unwrap_or_else(|error| panic!("{error}"))
                        .grep
                        .fits(&entry);
                    assert_eq!(found, wanted == word, "{wanted} of {}", shown(&entry));
                }
            }
        }
    }
}
