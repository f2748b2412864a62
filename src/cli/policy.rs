mod asked;
mod on_disk;
mod show;
mod suggest;
mod test;

use crate::cli::context::{Context, block_on};
use crate::cli::failure::Failure;
use crate::cli::{sanitise, target};
use crate::config::{self, read_source};
use crate::core::policy::{
    Ask, Circumstances, Decision, Explanation, Policy as Rules, RuleRef, Verdict, explain, gate,
    only_reads_the_project, rules_that_allow,
};
use crate::core::settings;
use crate::core::settings::SlotConfig;
use crate::core::text::diagnostic::{Problem, render};
use crate::os::real_paths::RealPaths;
use anstyle::{AnsiColor, Style};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use show::Show;
use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};
use suggest::Suggest;
use test::Test;
use unicode_width::UnicodeWidthStr;

/// Checks policies, and says what one decides and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond policy check                          every policy of the config, and its examples
  missiond policy check policies/coder.toml
  missiond policy explain --policy policies/coder.toml --tool Bash --input '{\"command\":\"git push\"}'
  missiond policy explain --policy policies/coder.toml - < calls.jsonl
  missiond policy show coder                     what is in force, with where each rule comes from
  missiond policy test --policy new.toml --role coder
  missiond policy suggest                        rules for what you have confirmed")]
pub struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyVerb,
}

#[derive(Debug, clap::Subcommand)]
enum PolicyVerb {
    /// Load policies and run their examples; say what is wrong, with line and reason
    Check(CheckArgs),
    /// Decide on a tool call as the daemon would: the verdict, the rule with file and line, and why
    Explain(Explain),
    Show(Show),
    Test(Test),
    Suggest(Suggest),
}

#[derive(Debug, clap::Args)]
struct CheckArgs {
    /// Policy files [default: all those of the config]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond policy explain --policy policies/coder.toml --tool Bash --input '{\"command\":\"cargo test\"}'
  missiond policy explain --policy policies/coder.toml --tool Edit --input '{\"file_path\":\"src/a.rs\"}'
  echo '{\"tool\":\"Bash\",\"input\":{\"command\":\"ls\"}}' | missiond policy explain --policy p.toml -

The verdict is what the gate of the daemon would answer: allow, none (Claude Code's own rules and your
settings decide), ask or deny. With `-c` or $MISSIOND_CONFIG, what the daemon of that config protects is
protected here too, and --slot takes the directory, the mode and project_settings of that slot.
With `-`, each line of the input is {\"tool\", \"input\", \"cwd\"?}, and each is answered with a line
{\"verdict\", \"rule\", \"why\", \"file\", \"line\"}; a line that is no such call is answered with \"ask\" and
an \"error\" that says why, and the exit code is 2 at the end.")]
struct Explain {
    /// The policy file
    #[arg(long, value_name = "FILE")]
    policy: PathBuf,
    /// The slot's directory: what relative paths, and rules without a leading `/`, are meant in [default: that of
    /// --slot, else the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The slot whose own overrides count
    #[arg(long, value_name = "SLOT")]
    slot: Option<String>,
    /// The permission mode that Claude Code runs in [default: that of --slot, else manual]
    #[arg(long, value_name = "MODE", value_parser = settings::mode_words())]
    mode: Option<String>,
    /// Claude Code has read the project's own settings too
    #[arg(long)]
    project_settings: bool,
    /// The tool, such as `Bash` or `mcp__github__get_issue`
    #[arg(long, value_name = "TOOL", required_unless_present = "lines")]
    tool: Option<String>,
    /// The tool's input as a JSON object
    #[arg(long, value_name = "JSON", default_value = "{}")]
    input: String,
    /// `-` reads calls from standard input, one JSON object on each line
    #[arg(value_name = "-", value_parser = ["-"], conflicts_with_all = ["tool", "input"])]
    lines: Option<String>,
}

impl PolicyArgs {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self.command {
            PolicyVerb::Check(check) => check.run(context),
            PolicyVerb::Explain(explain) => explain.run(context),
            PolicyVerb::Show(show) => block_on(show.run(context)),
            PolicyVerb::Test(test) => block_on(test.run(context)),
            PolicyVerb::Suggest(suggest) => block_on(suggest.run(context)),
        }
    }
}

impl CheckArgs {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let files = match self.files.is_empty() {
            true => policies_of_config(context)?,
            false => self.files,
        };
        let project = current_directory()?;
        let mut faults = 0;
        for file in &files {
            match load(file, &project) {
                Ok(policy) => report_good(context, file, &policy)?,
                Err(problems) => {
                    faults += problems.len();
                    report(context, file, &problems)?;
                }
            }
        }
        match faults {
            0 => Ok(()),
            1 => Err(Failure::usage("1 fault in the policies")),
            _ => Err(Failure::usage(format!("{faults} faults in the policies"))),
        }
    }
}

fn policies_of_config(context: &Context) -> Result<Vec<PathBuf>, Failure> {
    let file = target::config_file(context)?;
    let config = config::load(&file).map_err(|error| {
        Failure::usage(error.to_string()).next("name the files: missiond policy check FILE…")
    })?;
    let directory = config.daemon.policies;
    let entries = directory
        .read_dir()
        .map_err(|error| Failure::usage(format!("cannot read {}: {error}", directory.display())))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "toml")
        })
        .collect();
    files.sort();
    Ok(files)
}

/// A good file may still have rules that do nothing.
fn report_good(context: &Context, file: &Path, policy: &Rules) -> Result<(), Failure> {
    let hints = || policy.rules_without_effect();
    if context.out.json {
        let hint = |(rule, why): (&RuleRef, String)| json!({ "line": rule.line, "rule": rule.text, "why": why });
        let hints: Vec<Value> = hints().map(hint).collect();
        return context
            .out
            .json(&json!({ "ok": true, "file": file, "problems": [], "hints": hints }));
    }
    for (rule, why) in hints() {
        context.out.aside(format!(
            "{}:{}: {} can never allow: {why}",
            file.display(),
            rule.line,
            rule.text
        ));
    }
    context.out.done(format!("{}: good", file.display()))
}

fn report(context: &Context, file: &Path, problems: &[Problem]) -> Result<(), Failure> {
    if context.out.json {
        let faults: Vec<Value> = problems.iter().map(Problem::to_json).collect();
        return context
            .out
            .json(&json!({ "ok": false, "file": file, "problems": faults }));
    }
    context.out.aside(render(problems, true));
    context.out.aside("");
    Ok(())
}

fn load(file: &Path, project: &Path) -> Result<Rules, Vec<Problem>> {
    let source = read_source(file).map_err(|problem| vec![*problem])?;
    let own = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    Ok(Rules::parse(&source.text, file, project)?.protecting([own]))
}

fn current_directory() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::failed(format!("cannot tell the current directory: {error}")))
}

impl Explain {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let configured = on_disk::configured(context, self.slot.as_deref())?;
        let cwd = self.place(configured.slot.as_ref())?;
        let project = configured.project.as_ref().unwrap_or(&cwd);
        let policy = match load(&self.policy, project) {
            Ok(policy) => policy,
            Err(problems) => {
                report(context, &self.policy, &problems)?;
                let message = format!("{} can't be used", self.policy.display());
                return Err(Failure::usage(message));
            }
        };
        let policy = policy.protecting(configured.protected);
        let policy = match &self.slot {
            Some(slot) => policy.for_slot(slot),
            None => policy,
        };
        let judge = PolicyTester {
            policy,
            paths: RealPaths::new(std::env::home_dir()),
            cwd,
            circumstances: self.circumstances(configured.slot.as_ref()),
        };
        match self.tool {
            None => judge.lines(context),
            Some(tool) => judge.one(context, tool, &self.input),
        }
    }

    fn place(&self, slot: Option<&SlotConfig>) -> Result<PathBuf, Failure> {
        let current = current_directory()?;
        Ok(match (&self.cwd, slot) {
            (Some(cwd), _) => current.join(cwd),
            (None, Some(slot)) => slot.cwd.clone(),
            (None, None) => current,
        })
    }

    /// What Claude Code obeys beside the policy, by the flags or else by the slot's config.
    fn circumstances(&self, slot: Option<&SlotConfig>) -> Circumstances {
        let of_slot = slot.map_or("manual", |slot| slot.mode.as_str());
        let mode = self.mode.as_deref().unwrap_or(of_slot);
        let reads_settings = slot.is_some_and(|slot| slot.project_settings);
        Circumstances::configured(mode, self.project_settings || reads_settings)
    }
}

/// One call as a line of JSON.
#[derive(Deserialize)]
struct TriedCall {
    tool: String,
    #[serde(default)]
    input: Map<String, Value>,
    cwd: Option<PathBuf>,
}

struct PolicyTester {
    policy: Rules,
    paths: RealPaths,
    cwd: PathBuf,
    circumstances: Circumstances,
}

/// The longest line that is read: many times what Claude Code hands to a hook, and little memory.
const LONGEST_LINE: usize = 4 << 20;

impl PolicyTester {
    fn one(&self, context: &Context, tool: String, input: &str) -> Result<(), Failure> {
        let input: Map<String, Value> = serde_json::from_str(input).map_err(|error| {
            Failure::usage(format!("--input is no JSON object: {error}"))
                .next("such as --input '{\"command\":\"ls\"}'")
        })?;
        let ask = self.ask(TriedCall {
            tool,
            input,
            cwd: None,
        });
        let explanation = self.explain(&ask);
        let rules = rules_that_allow(&self.policy, &ask, &self.paths);
        let mut answer = with_parts(&explanation);
        answer["allowed_by"] = json!(rules);
        match context.out.json {
            true => context.out.json(&answer),
            false => {
                let next = rules.map_or_else(String::new, |rules| to_allow(&rules));
                context.out.line(for_people(&explanation) + &next)
            }
        }
    }

    fn lines(&self, context: &Context) -> Result<(), Failure> {
        let mut input = io::stdin().lock();
        let (mut number, mut bad) = (0, 0);
        while let Some(line) = next_line(&mut input)? {
            number += 1;
            let answer = match line.and_then(|line| call(&line)) {
                Ok(call) => as_json(&self.explain(&self.ask(call)).verdict),
                Err(why) => {
                    bad += 1;
                    unread(&format!("line {number}: {why}"))
                }
            };
            context.out.json(&answer)?;
        }
        match bad {
            0 => Ok(()),
            _ => Err(Failure::usage(format!(
                "{bad} of {number} lines were no calls"
            ))),
        }
    }

    fn ask(&self, call: TriedCall) -> Ask {
        Ask {
            tool: call.tool,
            input: Value::Object(call.input),
            cwd: call
                .cwd
                .map_or_else(|| self.cwd.clone(), |cwd| self.cwd.join(cwd)),
            at: None,
            complete: true,
        }
    }

    fn explain(&self, ask: &Ask) -> Explanation {
        let Explanation { verdict, parts } = explain(&self.policy, ask, &self.paths);
        let only_reads = || only_reads_the_project(ask, &self.paths);
        let verdict = gate::answer(verdict, self.circumstances, only_reads);
        Explanation { verdict, parts }
    }
}

/// The next line without its end; why it can't be used, if it is too long or no text; None at the end.
fn next_line(input: &mut impl BufRead) -> Result<Option<Result<String, String>>, Failure> {
    let unread = |error| Failure::failed(format!("cannot read standard input: {error}"));
    let mut line = Vec::new();
    let limit = LONGEST_LINE as u64 + 1;
    if input
        .take(limit)
        .read_until(b'\n', &mut line)
        .map_err(unread)?
        == 0
    {
        return Ok(None);
    }
    if line.len() > LONGEST_LINE {
        input.skip_until(b'\n').map_err(unread)?;
        return Ok(Some(Err(format!("longer than {LONGEST_LINE} bytes"))));
    }
    Ok(Some(
        String::from_utf8(line).map_err(|error| error.to_string()),
    ))
}

fn call(line: &str) -> Result<TriedCall, String> {
    if line.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    serde_json::from_str(line).map_err(|error| error.to_string())
}

/// What can't be read is for a person, and never allowed.
fn unread(why: &str) -> Value {
    json!({ "verdict": Decision::Ask, "rule": null, "why": why, "error": why })
}

fn as_json(verdict: &Verdict) -> Value {
    json!({
        "verdict": verdict.decision,
        "rule": verdict.rule.as_ref().map(|rule| &rule.text),
        "why": verdict.why,
        "file": verdict.rule.as_ref().map(|rule| &rule.file),
        "line": verdict.rule.as_ref().map(|rule| rule.line),
    })
}

fn with_parts(explanation: &Explanation) -> Value {
    let mut answer = as_json(&explanation.verdict);
    let part = |part: &crate::core::policy::PartVerdict| {
        let mut value = as_json(&part.verdict);
        value["part"] = Value::from(part.text.as_str());
        value
    };
    answer["parts"] = explanation.parts.iter().map(part).collect();
    answer
}

/// The verdict on a line, and below it each part with its own.
fn for_people(explanation: &Explanation) -> String {
    let verdict = &explanation.verdict;
    let mut text = format!(
        "{}  {}",
        word(verdict.decision),
        sanitise::text(&verdict.why)
    );
    if let [] | [_] = explanation.parts.as_slice() {
        return text + &place(verdict);
    }
    let shown: Vec<String> = explanation
        .parts
        .iter()
        .map(|part| shown_part(&part.text))
        .collect();
    let widest = shown.iter().map(|part| part.width()).max().unwrap_or(0);
    for (part, shown) in explanation.parts.iter().zip(shown) {
        let pad = " ".repeat(widest - shown.width());
        let rule = part
            .verdict
            .rule
            .as_ref()
            .map_or(&part.verdict.why, |rule| &rule.text);
        let decision = word(part.verdict.decision);
        text += &format!(
            "\n  {shown}{pad}  {decision}  {}{}",
            sanitise::text(rule),
            place(&part.verdict)
        );
    }
    text
}

/// The narrowest rules with which the call would be allowed.
fn to_allow(rules: &[String]) -> String {
    let quoted = rules
        .iter()
        .map(|rule| toml::Value::from(rule.as_str()).to_string());
    let quoted: Vec<String> = quoted.map(|rule| sanitise::one_line(&rule)).collect();
    format!("\n  to allow it, add to `allow`: {}", quoted.join(", "))
}

/// What fits on a line beside its verdict.
const PART_WIDTH: usize = 60;

fn shown_part(text: &str) -> String {
    let line = text.replace('\n', " ");
    let line = sanitise::text(&line);
    match line.chars().count() > PART_WIDTH {
        true => line.chars().take(PART_WIDTH - 1).chain(['…']).collect(),
        false => line.into_owned(),
    }
}

fn word(decision: Decision) -> String {
    let colour = match decision {
        Decision::Allow => AnsiColor::Green,
        Decision::Silent => AnsiColor::Cyan,
        Decision::Ask => AnsiColor::Yellow,
        Decision::Deny => AnsiColor::Red,
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    format!("{style}{:<5}{style:#}", decision.word())
}

fn place(verdict: &Verdict) -> String {
    match &verdict.rule {
        Some(rule) => format!("  {}:{}", rule.file.display(), rule.line),
        None => String::new(),
    }
}
