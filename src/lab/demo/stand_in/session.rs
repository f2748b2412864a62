//! The files and hook calls of the stand-in, in the same places as Claude Code's: the transcript, the session record,
//! and the calls of the hooks.

use crate::core::policy::{Ask, Decision, LexicalPaths, Policy, decide};
use crate::lab::rehearsal::ToolCall;
use crate::launch;
use crate::os::files;
use crate::slot::process_start;
use chrono::Utc;
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use uuid::Uuid;

/// The flags that it was started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandInStart {
    pub id: Uuid,
    pub resumed: bool,
    pub mode: String,
    pub settings: Option<PathBuf>,
}

#[derive(Debug)]
pub struct StandInSession {
    start: StandInStart,
    cwd: PathBuf,
    transcript: PathBuf,
    record: PathBuf,
    hooks: Value,
    /// The rules of its settings.
    rules: Option<Policy>,
}

/// The output of a hook.
#[derive(Debug)]
pub struct Said {
    /// True after exit 2: the action of the event must not happen.
    pub blocked: bool,
    pub output: Value,
    pub error: String,
}

impl StandInSession {
    /// Tells whether it asks about its folder: it does if Claude Code's own file exists and does not trust the folder.
    /// The home of a demo has no such file.
    pub fn asks_about_trust(&self) -> bool {
        let env = launch::process_environment();
        launch::trust_file(&env).is_some_and(|file| file.exists())
            && launch::would_ask(&env, &self.cwd)
    }

    /// Records that the folder is trusted, as Claude Code does.
    pub fn note_trust(&self) -> io::Result<()> {
        let env = launch::process_environment();
        let file = launch::trust_file(&env).ok_or_else(|| io::Error::other("no HOME is set"))?;
        let mut settings: Value = serde_json::from_slice(&fs::read(&file)?)?;
        let folder = self.cwd.display().to_string();
        settings["projects"][folder.as_str()]["hasTrustDialogAccepted"] = json!(true);
        files::replace(&file, &settings.to_string())
    }

    pub fn open(start: StandInStart) -> io::Result<StandInSession> {
        let env = launch::process_environment();
        let cwd = std::env::current_dir()?;
        let own = launch::own_directory(&env).ok_or_else(|| io::Error::other("no HOME is set"))?;
        let transcript = launch::transcript_path(&env, &cwd, start.id)
            .ok_or_else(|| io::Error::other("no HOME is set"))?;
        if start.resumed && !transcript.exists() {
            let id = start.id;
            return Err(io::Error::other(format!(
                "No conversation found with session ID: {id}"
            )));
        }
        fs::create_dir_all(transcript.parent().unwrap_or(&own))?;
        fs::create_dir_all(own.join("sessions"))?;
        let mut settings = match &start.settings {
            Some(file) => serde_json::from_slice::<Value>(&fs::read(file)?)?,
            None => Value::Null,
        };
        let given = launch::rules_of(&settings);
        let list = |rules| toml::Value::from(rules);
        let text = format!(
            "allow = {}\nask = {}\ndeny = {}",
            list(given.allow),
            list(given.ask),
            list(given.deny)
        );
        let rules = Policy::parse(&text, Path::new("settings"), &cwd).ok();
        Ok(StandInSession {
            record: own
                .join("sessions")
                .join(format!("{}.json", std::process::id())),
            start,
            cwd,
            transcript,
            hooks: settings["hooks"].take(),
            rules,
        })
    }

    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// Tells whether its own rules allow a call, if the gate decides nothing.
    pub fn allows(&self, call: &ToolCall) -> bool {
        let ask = Ask {
            tool: call.tool.clone(),
            input: call.input.clone(),
            cwd: self.cwd.clone(),
            at: None,
            complete: true,
        };
        let allows = |rules| decide(rules, &ask, &LexicalPaths).decision == Decision::Allow;
        self.rules.as_ref().is_some_and(allows)
    }

    pub fn is_resumed(&self) -> bool {
        self.start.resumed
    }

    /// The text of the conversation so far.
    pub fn transcript(&self) -> String {
        fs::read_to_string(&self.transcript).unwrap_or_default()
    }

    /// Writes the session record: `idle`, `busy`, or `waiting` for something.
    pub fn note(&self, status: &str, waiting_for: Option<&str>) -> io::Result<()> {
        let record = json!({
            "pid": std::process::id(), "procStart": process_start(std::process::id()),
            "sessionId": self.start.id, "cwd": self.cwd,
            "status": status, "waitingFor": waiting_for,
        });
        files::replace(&self.record, &record.to_string())
    }

    /// Adds a line to the transcript; `kind` is `user` or `assistant`.
    pub fn write(&self, kind: &str, content: Value, stop_reason: Option<&str>) -> io::Result<()> {
        self.add(
            kind,
            json!({"role": kind, "content": content, "stop_reason": stop_reason}),
        )
    }

    /// Adds the message that Claude Code itself writes when the API fails.
    pub fn write_error(&self, text: &str) -> io::Result<()> {
        let content = json!([{"type": "text", "text": text}]);
        self.add(
            "assistant",
            json!({"role": "assistant", "model": "<synthetic>", "content": content}),
        )
    }

    fn add(&self, kind: &str, message: Value) -> io::Result<()> {
        let line = json!({
            "type": kind, "uuid": Uuid::new_v4(), "sessionId": self.start.id, "cwd": self.cwd,
            "timestamp": Utc::now().to_rfc3339(), "message": message,
        });
        let mut file = files::append(&self.transcript)?;
        file.write_all(format!("{line}\n").as_bytes())
    }

    /// Calls the hooks of an event, one after another, with `more` in addition to the common fields. The last output
    /// counts: missiond configures one hook for each event.
    pub fn hook(&self, event: &str, more: Value) -> Option<Said> {
        let mut payload = json!({
            "session_id": self.start.id, "transcript_path": self.transcript, "cwd": self.cwd,
            "permission_mode": self.start.mode, "hook_event_name": event,
        });
        for (key, value) in more.as_object().into_iter().flatten() {
            payload[key] = value.clone();
        }
        let groups = self.hooks[event].as_array().into_iter().flatten();
        let hooks = groups.flat_map(|group| group["hooks"].as_array().into_iter().flatten());
        let mut said = None;
        for command in hooks.filter_map(|hook| hook["command"].as_str()) {
            said = run_hook(command, &payload).ok().or(said);
        }
        said
    }
}

impl Drop for StandInSession {
    fn drop(&mut self) {
        // If this fails, a reader recognises the process id as another process's.
        let _ = fs::remove_file(&self.record);
    }
}

fn run_hook(command: &str, payload: &Value) -> io::Result<Said> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A hook that reads nothing may still answer.
        let _ = stdin.write_all(payload.to_string().as_bytes());
    }
    let ended = child.wait_with_output()?;
    Ok(Said {
        blocked: ended.status.code() == Some(2),
        output: serde_json::from_slice(&ended.stdout).unwrap_or(Value::Null),
        error: String::from_utf8_lossy(&ended.stderr).trim().to_owned(),
    })
}
