//! One run of Claude Code in print mode, and what it decided on each call.

use super::Result;
use missiond::lab::rehearsal::{Endpoint, Home, HomeOptions, Step, ToolCall};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first argument of this program inside the sandbox.
pub const FLAG: &str = "--inside";
pub const PROJECT: &str = "/proj";
pub const CLAUDE: &str = "/run/claude";
pub const SELF: &str = "/run/beside";
pub const JOB: &str = "/run/job";
pub const OUTCOME: &str = "/run/outcome";

const PROMPT: &str = "go on";

#[derive(Debug, Serialize, Deserialize)]
pub struct Job {
    pub mode: String,
    pub permissions: Value,
    pub commands: Vec<String>,
    pub calls_at_once: usize,
}

/// What Claude Code decided by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// `allow`, `ask` or `deny`.
    pub word: String,
    pub why: String,
}

/// Plays the job and writes the outcome of each call, in their order; none for a call that was given up.
pub fn run(_: &[String]) -> Result<()> {
    let job: Job = serde_json::from_str(&fs::read_to_string(JOB)?)?;
    let endpoint = Endpoint::start()?;
    endpoint.on(PROMPT, steps(&job));
    let options = HomeOptions {
        trusted: vec![PathBuf::from(PROJECT)],
        ..HomeOptions::default()
    };
    fill_project()?;
    let home = Home::create(Path::new("/home"), &options)?;
    let refused = play(&job, &home, &endpoint.url())?;
    let requests = endpoint.requests();
    let last = requests.iter().rev().find(|request| request.is_turn());
    let messages = last.map(|request| request.body["messages"].clone());
    let outcomes = outcomes(&messages.unwrap_or_default(), &refused);
    if outcomes.len() != job.commands.len() {
        return Err(format!("{} of {} calls", outcomes.len(), job.commands.len()).into());
    }
    fs::write(OUTCOME, serde_json::to_string(&outcomes)?)?;
    Ok(())
}

fn steps(job: &Job) -> Vec<Step> {
    let call = |command: &String| ToolCall {
        tool: "Bash".to_owned(),
        input: json!({ "command": command, "description": "a call" }),
    };
    let turn = |commands: &[String]| Step::Tools {
        tools: commands.iter().map(call).collect(),
    };
    job.commands.chunks(job.calls_at_once).map(turn).collect()
}

/// Some files, as the lists of commands name them.
fn fill_project() -> Result<()> {
    for directory in [".git", "src", "docs", "tests", "lib"] {
        fs::create_dir_all(Path::new(PROJECT).join(directory))?;
    }
    for file in ["README.md", "src/main.rs", "docs/a.md", "lib/a.txt", ".env"] {
        fs::write(Path::new(PROJECT).join(file), "")?;
    }
    Ok(())
}

/// The ids of the calls that were not permitted.
fn play(job: &Job, home: &Home, url: &str) -> Result<HashSet<String>> {
    let (shell, settings) = (Path::new("/tmp/bash"), Path::new("/tmp/settings.json"));
    fs::write(shell, "#!/bin/sh\nexit 0\n")?;
    fs::set_permissions(shell, fs::Permissions::from_mode(0o755))?;
    fs::write(
        settings,
        json!({ "permissions": job.permissions }).to_string(),
    )?;
    let output = Command::new(CLAUDE)
        .args([
            "-p",
            PROMPT,
            "--output-format",
            "json",
            "--setting-sources",
            "user",
        ])
        .args(["--permission-mode", &job.mode, "--settings"])
        .arg(settings)
        .env_clear()
        .envs(home.environment(url))
        .envs(["SHELL", "CLAUDE_CODE_SHELL"].map(|name| (name, shell)))
        .stdin(Stdio::null())
        .output()?;
    let said: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("{error}: {}", String::from_utf8_lossy(&output.stderr)))?;
    let said = match said {
        Value::Array(mut events) => events.pop().unwrap_or_default(),
        said => said,
    };
    let refused = said["permission_denials"].as_array();
    let ids = refused
        .into_iter()
        .flatten()
        .filter_map(|call| call["tool_use_id"].as_str());
    Ok(ids.map(str::to_owned).collect())
}

fn outcomes(messages: &Value, refused: &HashSet<String>) -> Vec<Option<Outcome>> {
    let blocks = messages.as_array().into_iter().flatten();
    let blocks: Vec<&Value> = blocks
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .collect();
    let of_type = |kind: &'static str| blocks.iter().filter(move |block| block["type"] == kind);
    let results: HashMap<&str, String> = of_type("tool_result")
        .filter_map(|block| Some((block["tool_use_id"].as_str()?, text_of(&block["content"]))))
        .collect();
    let ids = of_type("tool_use").filter_map(|block| block["id"].as_str());
    ids.map(|id| outcome(results.get(id)?, refused.contains(id)))
        .collect()
}

fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        _ => String::new(),
    }
}

/// `None` for a call that was given up because of one beside it.
fn outcome(text: &str, is_refused: bool) -> Option<Outcome> {
    if text.contains("Cancelled: parallel tool call") {
        return None;
    }
    let is_denied =
        text.starts_with("Permission to use Bash") && text.ends_with("has been denied.");
    let word = match (is_refused, is_denied) {
        (false, _) => "allow",
        (true, true) => "deny",
        (true, false) => "ask",
    };
    let why = match is_denied {
        true => "a rule denies it",
        false => text.lines().next().unwrap_or_default(),
    };
    Some(Outcome {
        word: word.to_owned(),
        why: why.to_owned(),
    })
}
