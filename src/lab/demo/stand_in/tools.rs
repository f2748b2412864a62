//! The tools of the stand-in, and the dialogs before it uses one.

use super::asked::StandInAsk;
use super::session::Said;
use crate::lab::rehearsal::ToolCall;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;

/// The maximum bytes of output that are read: more than any of its commands prints.
const MAX_OUTPUT: u64 = 64 * 1024;

/// The title of a tool call in the conversation.
pub fn title(call: &ToolCall) -> String {
    match call.tool.as_str() {
        "AskUserQuestion" => "Asking a question…".to_owned(),
        tool => format!("{tool}({})", target(call)),
    }
}

fn target(call: &ToolCall) -> &str {
    let key = match call.tool.as_str() {
        "Bash" => "command",
        _ => "file_path",
    };
    call.input[key].as_str().unwrap_or_default()
}

/// The gate's decision on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gate {
    Allow,
    Deny(String),
    Ask(Option<String>),
}

/// The gate's answer. Without one, the stand-in asks before it runs a command, but not before it reads a file, like
/// Claude Code.
pub fn gate(call: &ToolCall, said: Option<Said>) -> Gate {
    let Some(said) = said else {
        return unsaid(call);
    };
    if said.blocked {
        return Gate::Deny(said.error);
    }
    let output = &said.output["hookSpecificOutput"];
    let reason = output["permissionDecisionReason"]
        .as_str()
        .map(str::to_owned);
    match output["permissionDecision"].as_str() {
        Some("allow") => Gate::Allow,
        Some("deny") => Gate::Deny(reason.unwrap_or_default()),
        Some("ask") => Gate::Ask(reason),
        _ => unsaid(call),
    }
}

fn unsaid(call: &ToolCall) -> Gate {
    match call.tool.as_str() {
        "Read" | "AskUserQuestion" => Gate::Allow,
        _ => Gate::Ask(None),
    }
}

/// The dialog that asks for permission for a call.
pub fn permission(call: &ToolCall, why: Option<String>) -> StandInAsk {
    match call.tool.as_str() {
        "Bash" => StandInAsk::permission("Bash command", target(call).to_owned(), why),
        _ => StandInAsk::permission("Tool use", title(call), why),
    }
}

/// Reads a file, up to the bytes that the stand-in shows.
pub fn read(call: &ToolCall, cwd: &Path) -> Result<String, String> {
    let file = cwd.join(target(call));
    let mut text = String::new();
    File::open(&file)
        .and_then(|file| file.take(MAX_OUTPUT).read_to_string(&mut text))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text)
}

/// A running command.
pub struct RunningTool {
    child: Child,
    output: Option<JoinHandle<String>>,
}

impl RunningTool {
    pub fn start(call: &ToolCall, cwd: &Path) -> io::Result<RunningTool> {
        let mut child = Command::new("sh")
            .args(["-c", &format!("exec 2>&1\n{}", target(call))])
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().map(|mut stdout| {
            std::thread::spawn(move || {
                let mut bytes = Vec::new();
                // Output before an error is shown.
                let _ = stdout.by_ref().take(MAX_OUTPUT).read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(RunningTool { child, output })
    }

    /// The output, once the command has ended: `Err` if it failed.
    pub fn ended(&mut self) -> io::Result<Option<Result<String, String>>> {
        let Some(status) = self.child.try_wait()? else {
            return Ok(None);
        };
        let output = self.output.take().and_then(|thread| thread.join().ok());
        let output = output.unwrap_or_default();
        Ok(Some(if status.success() {
            Ok(output)
        } else {
            Err(output)
        }))
    }
}

impl Drop for RunningTool {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result that the model gets for an answered question.
pub fn answered(input: &Value, answer: &str) -> String {
    let question = input["questions"][0]["question"]
        .as_str()
        .unwrap_or_default();
    format!("User has answered your questions: \"{question}\"=\"{answer}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(tool: &str) -> ToolCall {
        let input = json!({"command": "ls", "file_path": "a"});
        ToolCall {
            tool: tool.to_owned(),
            input,
        }
    }

    fn said(decision: &str) -> Option<Said> {
        let output = json!({"hookSpecificOutput": {
            "permissionDecision": decision, "permissionDecisionReason": "why",
        }});
        Some(Said {
            blocked: false,
            output,
            error: String::new(),
        })
    }

    #[test]
    fn the_gate_decides_and_silence_leaves_it_to_the_usual_way() {
        assert_eq!(gate(&call("Bash"), said("allow")), Gate::Allow);
        assert_eq!(
            gate(&call("Read"), said("deny")),
            Gate::Deny("why".to_owned())
        );
        assert_eq!(
            gate(&call("Read"), said("ask")),
            Gate::Ask(Some("why".to_owned()))
        );
        assert_eq!(gate(&call("Read"), None), Gate::Allow);
        assert_eq!(gate(&call("Bash"), None), Gate::Ask(None));
        let blocked = Said {
            blocked: true,
            output: Value::Null,
            error: "no daemon".to_owned(),
        };
        assert_eq!(
            gate(&call("Bash"), Some(blocked)),
            Gate::Deny("no daemon".to_owned())
        );
    }

    #[test]
    fn a_command_that_is_dropped_is_gone() {
        let long = ToolCall {
            tool: "Bash".to_owned(),
            input: json!({"command": "sleep 600"}),
        };
        let mut running = RunningTool::start(&long, Path::new("/")).expect("a shell");
        assert!(running.ended().expect("it can be looked at").is_none());
        drop(running);
    }
}
