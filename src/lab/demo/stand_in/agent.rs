//! The main loop of the stand-in: it takes messages, does what its script says, and shows it.

use super::asked::{StandInAnswer, StandInAsk, TRUSTED, YES};
use super::page::{Bottom, PageEntry, draw};
use super::session::StandInSession;
use super::tools::{self, Gate, RunningTool};
use super::tty::Tty;
use super::typed::TypedKey;
use crate::core::claude::transcript;
use crate::lab::rehearsal::{ErrorStep, ModelScript, Step, TextStep, ToolCall};
use serde_json::{Value, json};
use std::io;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// The interval between two turns of the spinner.
const TICK: Duration = Duration::from_millis(120);
/// The pause between two words of an answer.
const WORD: Duration = Duration::from_millis(45);
/// The duration of a thinking step without a duration of its own.
const THOUGHT: Duration = Duration::from_millis(1200);
/// The pause between two lines of a slow answer.
const SLOW_LINE: Duration = Duration::from_millis(300);

const SPINNER: [char; 4] = ['✢', '✶', '✻', '✽'];
const TURNING: [char; 4] = ['◐', '◓', '◑', '◒'];

/// The maximum of entries kept for the screen; the transcript has all of them.
const MAX_ENTRIES: usize = 200;

/// Why a turn ends early.
#[derive(Debug)]
pub enum AgentStop {
    Interrupted,
    /// The terminal or the disk is gone.
    Broken(io::Error),
}

impl From<io::Error> for AgentStop {
    fn from(error: io::Error) -> AgentStop {
        AgentStop::Broken(error)
    }
}

pub struct Agent {
    tty: Tty,
    session: StandInSession,
    script: ModelScript,
    entries: Vec<PageEntry>,
    draft: String,
    asked: Option<StandInAsk>,
    /// The start of the present work, with the count of the spinner's turns.
    work: Option<(Instant, usize)>,
}

impl Agent {
    pub fn new(tty: Tty, session: StandInSession, script: ModelScript) -> Agent {
        let turns = transcript::turns(session.transcript().lines());
        let entries = turns.iter().filter_map(|turn| match turn.role.as_str() {
            "user" => Some(PageEntry::Prompt(turn.text.clone())),
            "assistant" => Some(PageEntry::Text(turn.text.clone())),
            _ => None,
        });
        let mut agent = Agent {
            entries: entries.collect(),
            tty,
            session,
            script,
            draft: String::new(),
            asked: None,
            work: None,
        };
        if agent.entries.is_empty() {
            let hello = "A stand-in for Claude Code: its screens, and no model behind them.";
            agent.push(PageEntry::Note(hello.to_owned()));
        }
        agent
    }

    /// Takes one message after another until the terminal is gone.
    pub fn converse(&mut self) -> io::Result<()> {
        if self.session.asks_about_trust() && !self.is_trusted()? {
            return Ok(());
        }
        let source = if self.session.is_resumed() {
            "resume"
        } else {
            "startup"
        };
        self.session.hook("SessionStart", json!({"source": source}));
        loop {
            self.session.note("idle", None)?;
            let message = self.next_message()?;
            self.work = Some((Instant::now(), 0));
            self.session.note("busy", None)?;
            let outcome = self.turn(&message);
            (self.work, self.asked) = (None, None);
            match outcome {
                Ok(()) => {}
                Err(AgentStop::Interrupted) => self.interrupted()?,
                Err(AgentStop::Broken(error)) => return Err(error),
            }
        }
    }

    /// Asks about the folder before anything else, and remembers a yes.
    fn is_trusted(&mut self) -> io::Result<bool> {
        let folder = self.session.cwd().display().to_string();
        self.asked = Some(StandInAsk::trust(folder));
        loop {
            self.show()?;
            for key in self.tty.keys(Duration::from_secs(1))? {
                let Some(answer) = self.asked.as_mut().and_then(|asked| asked.press(&key)) else {
                    continue;
                };
                self.asked = None;
                let trusted = answer == StandInAnswer::Chosen(TRUSTED.to_owned());
                if trusted {
                    self.session.note_trust()?;
                }
                return Ok(trusted);
            }
        }
    }

    fn next_message(&mut self) -> io::Result<String> {
        loop {
            self.show()?;
            for key in self.tty.keys(Duration::from_secs(1))? {
                match key {
                    TypedKey::Enter if !self.draft.trim().is_empty() => {
                        return Ok(std::mem::take(&mut self.draft));
                    }
                    key => self.write(key),
                }
            }
        }
    }

    /// Applies a key to the input box.
    fn write(&mut self, key: TypedKey) {
        match key {
            TypedKey::Text(text) => self.draft.push_str(&text),
            TypedKey::Backspace => drop(self.draft.pop()),
            TypedKey::Clear => self.draft.clear(),
            TypedKey::Enter | TypedKey::Esc | TypedKey::Up | TypedKey::Down => {}
        }
    }

    fn turn(&mut self, message: &str) -> Result<(), AgentStop> {
        self.push(PageEntry::Prompt(message.to_owned()));
        self.show()?;
        self.session
            .hook("UserPromptSubmit", json!({"prompt": message}));
        self.session.write("user", json!(message), None)?;
        let mut said = String::new();
        for round in 0.. {
            let steps = self
                .script
                .response(message, round)
                .map_err(io::Error::other)?;
            let goes_on = steps.iter().any(Step::ends_response);
            for step in steps {
                match step {
                    Step::Error(error) => return self.fail(&error),
                    step => self.step(step, goes_on, &mut said)?,
                }
            }
            if !goes_on {
                break;
            }
        }
        self.session
            .hook("Stop", json!({"last_assistant_message": said}));
        Ok(())
    }

    fn step(&mut self, step: Step, goes_on: bool, said: &mut String) -> Result<(), AgentStop> {
        match step {
            Step::Text(TextStep { text, .. }) => {
                self.stream(text.split_inclusive(' '), WORD)?;
                self.say(&text, goes_on)?;
                *said = text;
            }
            Step::Slow { slow } => {
                let lines: Vec<String> = (1..=slow).map(|line| format!("line {line}\n")).collect();
                self.stream(lines.iter().map(String::as_str), SLOW_LINE)?;
                *said = lines.concat().trim_end().to_owned();
                self.say(said, goes_on)?;
            }
            Step::Tool(call) => self.call(&call)?,
            Step::Tools { tools } => tools.iter().try_for_each(|call| self.call(call))?,
            Step::Thinking { .. } => self.think(THOUGHT)?,
            Step::Hang { hang } => {
                self.think(Duration::try_from_secs_f64(hang).unwrap_or(THOUGHT))?
            }
            // Nothing here opens a gate, so it thinks until it is interrupted.
            Step::Gate { .. } => self.think(Duration::MAX)?,
            // The stand-in uses no tokens.
            Step::Tokens { .. } => {}
            Step::Error(error) => self.fail(&error)?,
        }
        Ok(())
    }

    fn think(&mut self, time: Duration) -> Result<(), AgentStop> {
        let begin = Instant::now();
        while begin.elapsed() < time {
            self.tick(TICK)?;
        }
        Ok(())
    }

    fn stream<'t>(
        &mut self,
        parts: impl Iterator<Item = &'t str>,
        pause: Duration,
    ) -> Result<(), AgentStop> {
        self.push(PageEntry::Text(String::new()));
        for part in parts {
            if let Some(PageEntry::Text(text)) = self.entries.last_mut() {
                text.push_str(part);
            }
            self.tick(pause)?;
        }
        Ok(())
    }

    fn say(&self, text: &str, goes_on: bool) -> io::Result<()> {
        let reason = if goes_on { "tool_use" } else { "end_turn" };
        let content = json!([{"type": "text", "text": text}]);
        self.session.write("assistant", content, Some(reason))
    }

    fn fail(&mut self, error: &ErrorStep) -> Result<(), AgentStop> {
        let text = format!("API Error: {} {}", error.status, error.message);
        self.push(PageEntry::Text(text.clone()));
        self.session.write_error(&text)?;
        self.session.hook(
            "StopFailure",
            json!({"error": error.error, "last_assistant_message": text}),
        );
        Ok(())
    }

    /// Makes a tool call, from the gate to its result.
    fn call(&mut self, call: &ToolCall) -> Result<(), AgentStop> {
        let id = format!("toolu_{}", Uuid::new_v4().simple());
        let ToolCall { tool, input } = call;
        let content = json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]);
        self.session.write("assistant", content, Some("tool_use"))?;
        let (title, result) = (tools::title(call), None);
        self.push(PageEntry::Call { title, result });
        self.show()?;
        let told = json!({"tool_name": tool, "tool_input": input, "tool_use_id": id});
        let said = self.session.hook("PreToolUse", told.clone());
        let result = match tools::gate(call, said) {
            Gate::Deny(reason) => Err(reason),
            Gate::Allow => self.use_tool(call)?,
            Gate::Ask(None) if self.session.allows(call) => self.use_tool(call)?,
            Gate::Ask(why) => {
                self.leave(call, why, &id, told.clone())?;
                self.use_tool(call)?
            }
        };
        self.session.hook("PostToolUse", told);
        let text = result.as_ref().unwrap_or_else(|error| error);
        self.finish_call(text);
        self.write_result(&id, text, result.is_err())?;
        self.think(THOUGHT)
    }

    /// Asks for permission; a no ends the turn.
    fn leave(
        &mut self,
        call: &ToolCall,
        why: Option<String>,
        id: &str,
        told: Value,
    ) -> Result<(), AgentStop> {
        let asked = tools::permission(call, why);
        match self.ask(asked, Some(told))? {
            StandInAnswer::Chosen(label) if label == YES => Ok(()),
            StandInAnswer::Chosen(_) | StandInAnswer::Cancelled => {
                self.write_result(
                    id,
                    "The user doesn't want to proceed with this tool use.",
                    true,
                )?;
                Err(AgentStop::Interrupted)
            }
        }
    }

    fn use_tool(&mut self, call: &ToolCall) -> Result<Result<String, String>, AgentStop> {
        match call.tool.as_str() {
            "Bash" => self.run(call),
            "Read" => Ok(tools::read(call, self.session.cwd())),
            "AskUserQuestion" => self.question(&call.input),
            other => Ok(Err(format!("the stand-in has no tool {other}"))),
        }
    }

    fn run(&mut self, call: &ToolCall) -> Result<Result<String, String>, AgentStop> {
        let mut running = RunningTool::start(call, self.session.cwd())?;
        loop {
            if let Some(result) = running.ended()? {
                return Ok(result);
            }
            self.tick(TICK)?;
        }
    }

    fn question(&mut self, input: &Value) -> Result<Result<String, String>, AgentStop> {
        let Some(asked) = StandInAsk::question(input) else {
            return Ok(Err("no question was given".to_owned()));
        };
        match self.ask(asked, None)? {
            StandInAnswer::Chosen(answer) => Ok(Ok(tools::answered(input, &answer))),
            StandInAnswer::Cancelled => Err(AgentStop::Interrupted),
        }
    }

    /// Shows a dialog until it is answered.
    fn ask(&mut self, asked: StandInAsk, told: Option<Value>) -> Result<StandInAnswer, AgentStop> {
        self.session.note("waiting", Some(&asked.waiting_for()))?;
        self.asked = Some(asked);
        self.show()?;
        if let Some(told) = told {
            self.session.hook("PermissionRequest", told);
        }
        loop {
            self.show()?;
            for key in self.tty.keys(Duration::from_secs(1))? {
                let answer = self.asked.as_mut().and_then(|asked| asked.press(&key));
                if let Some(answer) = answer {
                    self.asked = None;
                    self.session.note("busy", None)?;
                    self.show()?;
                    return Ok(answer);
                }
            }
        }
    }

    fn interrupted(&mut self) -> io::Result<()> {
        self.finish_call("Interrupted");
        self.push(PageEntry::Note(
            "Interrupted · What should be done instead?".to_owned(),
        ));
        let text = "[Request interrupted by user]";
        self.session
            .write("user", json!([{"type": "text", "text": text}]), None)
    }

    fn write_result(&self, id: &str, text: &str, is_error: bool) -> io::Result<()> {
        let result = json!([{
            "type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error,
        }]);
        self.session.write("user", result, None)
    }

    fn finish_call(&mut self, text: &str) {
        if let Some(PageEntry::Call {
            result: result @ None,
            ..
        }) = self.entries.last_mut()
        {
            *result = Some(text.to_owned());
        }
    }

    fn push(&mut self, entry: PageEntry) {
        self.entries.push(entry);
        let surplus = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..surplus);
    }

    /// Works for a while; keys go to the input box, and Esc interrupts.
    fn tick(&mut self, time: Duration) -> Result<(), AgentStop> {
        if let Some((_, turns)) = &mut self.work {
            *turns = turns.wrapping_add(1);
        }
        self.show()?;
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            for key in self.tty.keys(left)? {
                match key {
                    TypedKey::Esc => return Err(AgentStop::Interrupted),
                    key => self.write(key),
                }
            }
            if Instant::now() >= end {
                return Ok(());
            }
            self.show()?;
        }
    }

    fn show(&mut self) -> io::Result<()> {
        let (cols, rows) = self.tty.size();
        let work = self
            .work
            .map(|(since, turns)| spinner(since.elapsed(), turns));
        let bottom = match &self.asked {
            Some(asked) => Bottom::Dialog(asked),
            None => Bottom::Input {
                draft: &self.draft,
                work: work.as_deref(),
            },
        };
        let page = draw(cols, rows, &self.entries, bottom);
        let sign = match self.work {
            Some((_, turns)) if self.asked.is_none() => TURNING[turns % TURNING.len()],
            _ => '✳',
        };
        self.tty.show(&page, &format!("{sign} stand-in"))
    }
}

fn spinner(time: Duration, turns: usize) -> String {
    let sign = SPINNER[turns % SPINNER.len()];
    format!("{sign} Working… ({}s)", time.as_secs())
}
