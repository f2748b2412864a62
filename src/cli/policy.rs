mod asked;
mod on_disk;
mod show;
mod suggest;
mod test;

use crate::cli::context::{Context, block_on};
use crate::cli::failure::Failure;
use crate::cli::{complete, sanitise, target};
use crate::config::{self, read_source};
use crate::core::policy::{
    Ask, Circumstances, Decision, Explanation, Policy as Rules, RuleEffect, RuleRef, Verdict,
    explain, gate, only_reads_the_project, rules_that_allow,
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
use test::{Test, same_file};
use unicode_width::UnicodeWidthStr;

/// Checks policies, and says what one decides and why.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond policy check                          every policy of the config, and its examples
  missiond policy check policies/coder.toml
  missiond policy explain coder 'make && git push'
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
  missiond policy explain coder 'make && git push'    a command of the slot `coder`
  missiond policy explain coder --tool Edit --input '{\"file_path\":\"src/a.rs\"}'
  missiond policy explain --policy policies/coder.toml --tool Bash --input '{\"command\":\"cargo test\"}'
  echo '{\"tool\":\"Bash\",\"input\":{\"command\":\"ls\"}}' | missiond policy explain --policy p.toml -

The verdict is what the gate of the daemon would answer: allow, none (Claude Code's own rules and your
settings decide), ask or deny. With a SLOT, it is judged by the files of the config: the policy of the slot's
role, its directory, its mode and its project_settings. With `-c` or $MISSIOND_CONFIG and --policy, what the
daemon of that config protects is protected here too.
With `-`, each line of the input is {\"tool\", \"input\", \"cwd\"?}. \"cwd\" is the directory of the call; if
neither --cwd nor a slot is named, it is also the slot's directory. Each line is answered with a line
{\"verdict\", \"rule\", \"why\", \"file\", \"line\"}; a line that is no such call is answered with \"ask\" and
an \"error\" that says why, and the exit code is 2 at the end.")]
struct Explain {
    /// The slot that makes the call; or `-`, which reads calls from standard input, one JSON object on each line
    #[arg(value_name = "SLOT", add = complete::slots())]
    of: Option<String>,
    /// A shell command, as the input of the tool Bash
    #[arg(value_name = "COMMAND", conflicts_with_all = ["tool", "input"])]
    command: Option<String>,
    /// The policy file [default: that of the slot's role]
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// The slot's directory: what relative paths, and rules without a leading `/`, are meant in [default: that of
    /// --slot, else the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// The slot that makes the calls of `-`; or whose own overrides count, for a policy file that no config names
    #[arg(long, value_name = "SLOT")]
    slot: Option<String>,
    /// The permission mode that Claude Code runs in [default: that of --slot, else manual]
    #[arg(long, value_name = "MODE", value_parser = settings::mode_words())]
    mode: Option<String>,
    /// Claude Code has read the project's own settings too
    #[arg(long)]
    project_settings: bool,
    /// The tool, such as `Bash` or `mcp__github__get_issue`
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// The tool's input as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool", default_value = "{}")]
    input: String,
}

/// What is to be judged.
enum Tried {
    Lines,
    One { tool: String, input: String },
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
        let tried = self.tried()?;
        let configured = self.configured(context)?;
        let cwd = self.place(configured.slot.as_ref())?;
        let project = configured.project.as_ref().unwrap_or(&cwd);
        let file = self.policy.as_ref().or(configured.policy.as_ref());
        let file = file.ok_or_else(|| {
            Failure::usage("no policy is named")
                .next("name a slot: missiond policy explain SLOT COMMAND; or a file: --policy FILE")
        })?;
        let policy = match load(file, project) {
            Ok(policy) => policy,
            Err(problems) => {
                report(context, file, &problems)?;
                let message = format!("{} can't be used", file.display());
                return Err(Failure::usage(message));
            }
        };
        let of_slot = configured.slot.as_ref().filter(|_| self.policy.is_none());
        let running = match of_slot {
            Some(slot) => block_on(async { Ok(show::in_force(context, &slot.name).await) })?,
            None => None,
        };
        let named = configured.slot.as_ref().map(|slot| slot.name.as_str());
        let settled = |policy: Rules| {
            let policy = policy.protecting(configured.protected.clone());
            match named.or(self.slot()) {
                Some(slot) => policy.for_slot(slot),
                None => policy,
            }
        };
        let before = running.as_ref().and_then(|running| {
            let text = running.text.as_ref()?;
            Rules::parse(text, &running.policy.file, project).ok()
        });
        let judge = PolicyTester {
            policy: settled(policy),
            in_force: before.map(settled),
            paths: RealPaths::new(std::env::home_dir()),
            cwd,
            is_of_slot: self.cwd.is_some() || configured.slot.is_some(),
            circumstances: self.circumstances(configured.slot.as_ref()),
        };
        match tried {
            Tried::Lines => judge.lines(context)?,
            Tried::One { tool, input } => judge.one(context, tool, &input)?,
        }
        if let Some(running) = running {
            show::note_what_waits(context, &running);
        }
        Ok(())
    }

    fn reads_lines(&self) -> bool {
        self.of.as_deref() == Some("-")
    }

    fn slot(&self) -> Option<&str> {
        let of = self.of.as_deref().filter(|_| !self.reads_lines());
        of.or(self.slot.as_deref())
    }

    fn tried(&self) -> Result<Tried, Failure> {
        if self.of.is_some() && self.slot.is_some() && !self.reads_lines() {
            return Err(
                Failure::usage("two slots are named, and a call is made by one")
                    .next("leave out --slot"),
            );
        }
        let called = (self.reads_lines(), &self.command, &self.tool);
        match called {
            (true, None, None) => Ok(Tried::Lines),
            (false, Some(command), _) => Ok(Tried::One {
                tool: "Bash".to_owned(),
                input: json!({ "command": command }).to_string(),
            }),
            (false, None, Some(tool)) => Ok(Tried::One {
                tool: tool.clone(),
                input: self.input.clone(),
            }),
            (true, ..) => Err(
                Failure::usage("with `-` the calls come from standard input")
                    .next("leave out the command, --tool and --input"),
            ),
            (false, None, None) => Err(Failure::usage("no call is named")
                .next("name a command: missiond policy explain SLOT COMMAND; or --tool TOOL")),
        }
    }

    /// A slot is one of a config. A policy file stands alone, unless a config is named.
    fn configured(&self, context: &Context) -> Result<on_disk::Configured, Failure> {
        // Without a file, the policy is that of the slot's role.
        let is_of_slot = self.slot().is_some() && self.policy.is_none();
        let file = match (is_of_slot, context.named_config()) {
            (true, _) => target::config_to_run(context)?,
            (false, Some(named)) => named.to_owned(),
            (false, None) => return Ok(on_disk::Configured::default()),
        };
        on_disk::configured(context, &file, self.slot())
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
    /// The policy that the daemon goes by until `reload`, if the file has another one: both must allow a call.
    in_force: Option<Rules>,
    paths: RealPaths,
    cwd: PathBuf,
    /// Whether `cwd` is the slot's directory: the user has named it, or the slot.
    is_of_slot: bool,
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
        let effect = rules.as_ref().and_then(|rules| self.effect(context, rules));
        let mut answer = with_parts(&explanation);
        answer["allowed_by"] = json!(rules);
        answer["would_change"] = json!(effect);
        match context.out.json {
            true => context.out.json(&answer),
            false => {
                let next = rules.map_or_else(String::new, |rules| to_allow(&rules));
                let effect = effect.map(|effect| format!("\n  with that, {}", effect.shown()));
                let next = next + &effect.unwrap_or_default();
                context.out.line(for_people(&explanation) + &next)
            }
        }
    }

    /// What rules would have changed lately in the role that has this policy; `None` without a config that names it, or
    /// without an audit.
    fn effect(&self, context: &Context, rules: &[String]) -> Option<RuleEffect> {
        context.named_config()?;
        let config = on_disk::config(context).ok()?;
        let is_own =
            |role: &&String| same_file(&config.daemon.policy_file(role), &self.policy.file);
        let role = config.policies.keys().find(is_own)?;
        let calls = block_on(asked::recent_calls(context, None)).ok()?;
        asked::effect(&config, role, &self.policy, rules, &calls)
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
        let place = call.cwd.map(|cwd| self.cwd.join(cwd));
        let (cwd, at) = match place {
            Some(place) if !self.is_of_slot => (place, None),
            at => (self.cwd.clone(), at),
        };
        Ask {
            tool: call.tool,
            input: Value::Object(call.input),
            cwd,
            at,
            complete: true,
        }
    }

    fn explain(&self, ask: &Ask) -> Explanation {
        let on_disk = self.explain_by(&self.policy, ask);
        let in_force = self.in_force.iter();
        let in_force = in_force.map(|policy| self.explain_by(policy, ask));
        in_force.fold(on_disk, |strictest, other| {
            match other.verdict.decision > strictest.verdict.decision {
                true => other,
                false => strictest,
            }
        })
    }

    fn explain_by(&self, policy: &Rules, ask: &Ask) -> Explanation {
        let Explanation { verdict, parts } = explain(policy, ask, &self.paths);
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
