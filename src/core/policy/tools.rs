//! The tools of Claude Code: their names, what a rule can say about them, and what a call of them is about.

use super::Ask;
use serde_json::Value;

/// How a tool accesses its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// What the brackets of a rule for a tool contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Command,
    Path(Access),
    Host,
    /// A name, from this key of the input.
    Name {
        key: &'static str,
        or: &'static str,
    },
    Nothing,
}

#[derive(Debug)]
pub struct Tool {
    pub name: &'static str,
    pub takes: Takes,
    /// Keys of its input that users may write in a rule by mistake.
    pub keys: &'static [&'static str],
}

const BASH_KEYS: &[&str] = &[
    "command",
    "description",
    "timeout",
    "run_in_background",
    "dangerouslyDisableSandbox",
];
const FILE_KEYS: &[&str] = &[
    "file_path",
    "path",
    "notebook_path",
    "pattern",
    "content",
    "old_string",
    "new_string",
];
const READS: Takes = Takes::Path(Access::Read);
const WRITES: Takes = Takes::Path(Access::Write);

const fn tool(name: &'static str, takes: Takes, keys: &'static [&'static str]) -> Tool {
    Tool { name, takes, keys }
}

const fn plain(name: &'static str) -> Tool {
    tool(name, Takes::Nothing, &[])
}

const TOOLS: &[Tool] = &[
    tool("Bash", Takes::Command, BASH_KEYS),
    tool("Monitor", Takes::Command, BASH_KEYS),
    tool("Read", READS, FILE_KEYS),
    tool("NotebookRead", READS, FILE_KEYS),
    tool("Grep", READS, FILE_KEYS),
    tool("Glob", READS, FILE_KEYS),
    tool("LS", READS, FILE_KEYS),
    tool("Edit", WRITES, FILE_KEYS),
    tool("Write", WRITES, FILE_KEYS),
    tool("MultiEdit", WRITES, FILE_KEYS),
    tool("NotebookEdit", WRITES, FILE_KEYS),
    tool("WebFetch", Takes::Host, &["url", "prompt"]),
    tool(
        "Agent",
        Takes::Name {
            key: "subagent_type",
            or: "general-purpose",
        },
        &["subagent_type", "prompt", "description"],
    ),
    tool(
        "Skill",
        Takes::Name {
            key: "skill",
            or: "",
        },
        &["skill", "args"],
    ),
    plain("WebSearch"),
    plain("AskUserQuestion"),
    plain("EnterPlanMode"),
    plain("ExitPlanMode"),
    plain("EnterWorktree"),
    plain("ExitWorktree"),
    plain("TodoWrite"),
    plain("TaskCreate"),
    plain("TaskGet"),
    plain("TaskUpdate"),
    plain("TaskList"),
    plain("TaskStop"),
    plain("TaskOutput"),
    plain("BashOutput"),
    plain("KillShell"),
    plain("KillBash"),
    plain("SlashCommand"),
    plain("SendMessage"),
    plain("CronCreate"),
    plain("CronDelete"),
    plain("CronList"),
    plain("ScheduleWakeup"),
    plain("RemoteTrigger"),
    plain("PushNotification"),
    plain("Workflow"),
    plain("ToolSearch"),
    plain("LSP"),
    plain("PowerShell"),
    plain("REPL"),
    plain("Artifact"),
    plain("Projects"),
    plain("ReportFindings"),
    plain("ReadNotifications"),
    plain("ListMcpResources"),
    plain("ListMcpResourcesTool"),
    plain("ReadMcpResource"),
    plain("ReadMcpResourceTool"),
    plain("ReadMcpResourceDir"),
    plain("RefreshMcpTools"),
];

/// The canonical name of a tool that has several.
fn canonical(name: &str) -> &str {
    match name {
        "Task" => "Agent",
        other => other,
    }
}

/// Whether the tool itself is a question: `[dialogs]` decides on the answer, and rules on tools do not matter.
pub fn is_dialog(tool: &str) -> bool {
    matches!(tool, "AskUserQuestion" | "ExitPlanMode")
}

/// Whether a tool touches nothing but the conversation: no file, no program, no network. Claude Code never asks about these, or
/// they are dialogs themselves.
pub fn stays_in_session(tool: &str) -> bool {
    is_dialog(tool)
        || matches!(
            tool,
            "EnterPlanMode"
                | "TodoWrite"
                | "TaskCreate"
                | "TaskGet"
                | "TaskUpdate"
                | "TaskList"
                | "TaskOutput"
                | "TaskStop"
                | "BashOutput"
                | "KillShell"
                | "KillBash"
                | "ToolSearch"
        )
}

pub fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == canonical(name))
}

/// Whether a tool works on everything below its path.
pub fn searches(name: &str) -> bool {
    matches!(name, "Grep" | "Glob" | "LS")
}

/// Whether a text can be the name of a tool.
pub fn is_name(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    !text.is_empty() && text.bytes().all(fits)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    TOOLS.iter().map(|tool| tool.name)
}

/// Whether a rule that only names the tool `rule` matches calls of `called`: `Read` and `Edit` match every built-in tool that
/// reads or edits files, `Bash` every one that runs a command.
pub fn covers(rule: &str, called: &str) -> bool {
    let (rule, called) = (canonical(rule), canonical(called));
    if rule == called {
        return true;
    }
    match (rule, find(called).map(|tool| tool.takes)) {
        ("Read", Some(takes)) => takes == READS,
        ("Edit", Some(takes)) => takes == WRITES,
        ("Bash", Some(takes)) => takes == Takes::Command,
        _ => false,
    }
}

/// What a call is about, as far as rules can match it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    Command(&'a str),
    Path(Access, &'a str),
    Url(&'a str),
    Name(&'a str),
    /// The call can be judged by its tool only.
    Tool,
    /// The input lacks the key that this tool's rules match.
    Missing(&'static str),
}

pub fn subject(ask: &Ask) -> Subject<'_> {
    let text = |key: &str| ask.input.get(key).and_then(Value::as_str);
    match find(&ask.tool).map(|tool| tool.takes) {
        Some(Takes::Command) => {
            text("command").map_or(Subject::Missing("command"), Subject::Command)
        }
        Some(Takes::Path(access)) => path_subject(ask, access),
        Some(Takes::Host) => text("url").map_or(Subject::Missing("url"), Subject::Url),
        Some(Takes::Name { key, or }) => Subject::Name(text(key).unwrap_or(or)),
        Some(Takes::Nothing) | None => Subject::Tool,
    }
}

fn path_subject(ask: &Ask, access: Access) -> Subject<'_> {
    let text = |key: &str| ask.input.get(key).and_then(Value::as_str);
    match ask.tool.as_str() {
        // A search without a path is in the working directory; a pattern can lead out of its path.
        "Glob" => match text("pattern") {
            Some(pattern) if pattern.contains("..") && text("path").is_some() => {
                Subject::Missing("pattern without ..")
            }
            Some(pattern) if pattern.starts_with(['/', '~']) || pattern.contains("..") => {
                Subject::Path(
                    access,
                    pattern
                        .split(['*', '?', '[', '{'])
                        .next()
                        .unwrap_or(pattern),
                )
            }
            _ => Subject::Path(access, text("path").unwrap_or(".")),
        },
        "Grep" | "LS" => Subject::Path(access, text("path").unwrap_or(".")),
        "NotebookEdit" | "NotebookRead" => text("notebook_path")
            .map_or(Subject::Missing("notebook_path"), |path| {
                Subject::Path(access, path)
            }),
        _ => text("file_path").map_or(Subject::Missing("file_path"), |path| {
            Subject::Path(access, path)
        }),
    }
}

/// The globs of the files that a search reads, each relative to the searched directory; `None` if the search has no globs. Braces
/// are expanded.
pub fn searched_globs(ask: &Ask) -> Option<Vec<String>> {
    let glob = ask.input.get("glob").and_then(Value::as_str)?;
    (ask.tool == "Grep" && !glob.starts_with('!')).then_some(())?;
    let mut found = Vec::new();
    for glob in without_braces(glob) {
        // A glob without a slash matches at any depth.
        if !glob.contains('/') {
            found.push(format!("*/{glob}"));
        }
        found.push(glob.trim_start_matches('/').to_owned());
    }
    Some(found)
}

/// `{a,b}` as `a` and `b`; nested braces may match anything.
fn without_braces(glob: &str) -> Vec<String> {
    let taken_apart = glob.split_once('{').and_then(|(start, rest)| {
        let (inner, end) = rest.split_once('}')?;
        let is_plain = !inner.contains('{') && !end.contains('{');
        let of = |one: &str| format!("{start}{one}{end}");
        is_plain.then(|| inner.split(',').map(of).collect())
    });
    match taken_apart {
        Some(globs) => globs,
        None if glob.contains(['{', ' ', ',']) => vec!["*".to_owned()],
        None => vec![glob.to_owned()],
    }
}
