//! The daemon's side of the hooks in a rehearsal: it records the called hooks, and answers the gate by the scene's
//! rule.

use super::scenes::{REFUSAL, SceneRule};
use crate::core::claude::gate_output;
use crate::core::model::envelope::{Line, Request};
use crate::core::model::{HookAnswer, HookParams, MAX_LINE};
use serde_json::Value;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// The maximum of hooks recorded in one scene; a turn calls a handful.
const MAX_HEARD: usize = 256;

/// A listener for hooks, until it is dropped.
#[derive(Debug)]
pub struct Hooks {
    shared: Arc<Mutex<HooksShared>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct HooksShared {
    heard: Vec<String>,
    /// Whether the session's first hook was called, which may be before or after any screen.
    session_began: bool,
    rule: Option<SceneRule>,
}

impl Hooks {
    pub fn listen(socket: &Path) -> io::Result<Hooks> {
        let listener = UnixListener::bind(socket)?;
        let shared = Arc::new(Mutex::default());
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Ok(Hooks { shared, task })
    }

    /// Resets all state before another start of the program.
    pub fn forget(&self) {
        *locked(&self.shared) = HooksShared::default();
    }

    /// Forgets the recorded hooks, and leaves every call to a person.
    pub fn begin_scene(&self) {
        let mut shared = locked(&self.shared);
        shared.heard.clear();
        shared.rule = None;
    }

    pub fn set(&self, rule: SceneRule) {
        locked(&self.shared).rule = Some(rule);
    }

    /// Tells whether SessionStart was called since the program was started.
    pub fn session_began(&self) -> bool {
        locked(&self.shared).session_began
    }

    /// Tells whether this hook was called in this scene.
    pub fn heard(&self, hook: &str) -> bool {
        locked(&self.shared).heard.iter().any(|name| name == hook)
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A panic while this was held leaves the values consistent, because each is changed in one step.
fn locked(shared: &Mutex<HooksShared>) -> MutexGuard<'_, HooksShared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(listener: UnixListener, shared: Arc<Mutex<HooksShared>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        // A hook that disconnects, or sends something else, gets no answer; at the gate that blocks the call.
        tokio::spawn(async move { drop(answer(stream, &shared).await) });
    }
}

async fn answer(stream: UnixStream, shared: &Mutex<HooksShared>) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut text = String::new();
    let mut reader = BufReader::new(reader).take(MAX_LINE as u64);
    reader.read_line(&mut text).await?;
    let request: Request = serde_json::from_str(&text)?;
    let params: HookParams = serde_json::from_value(request.params)?;
    let output = hear(&params.payload, &mut locked(shared));
    let result = serde_json::to_value(HookAnswer { output })?;
    let line = serde_json::to_string(&Line::answer(request.id, Ok(result)))?;
    writer.write_all(format!("{line}\n").as_bytes()).await
}

fn hear(payload: &Value, shared: &mut HooksShared) -> Option<Value> {
    let name = payload["hook_event_name"].as_str().unwrap_or_default();
    if shared.heard.len() < MAX_HEARD {
        shared.heard.push(name.to_owned());
    }
    shared.session_began |= name == "SessionStart";
    if name != "PreToolUse" {
        return None;
    }
    shared.rule.map(|rule| match rule {
        SceneRule::Allow => gate_output("allow", "allowed in a rehearsal"),
        SceneRule::Deny => gate_output("deny", REFUSAL),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_gate_gets_an_answer_and_only_where_there_is_a_rule() {
        let mut shared = HooksShared::default();
        let (gate, stop) = (
            json!({"hook_event_name": "PreToolUse"}),
            json!({"hook_event_name": "Stop"}),
        );
        assert_eq!(hear(&gate, &mut shared), None);
        shared.rule = Some(SceneRule::Deny);
        assert_eq!(hear(&stop, &mut shared), None);
        let refused = hear(&gate, &mut shared).expect("an answer");
        assert!(refused.to_string().contains(REFUSAL), "{refused}");
        assert_eq!(shared.heard, ["PreToolUse", "Stop", "PreToolUse"]);
    }
}
