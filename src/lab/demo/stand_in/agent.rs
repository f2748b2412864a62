//! The stand-in at work: it takes messages, does what its script says, and shows it.

use super::asked::{Answer, Asked, TRUSTED, YES};
use super::page::{Bottom, Entry, draw};
use super::session::Session;
use super::tools::{self, Gate, Running};
use super::tty::Tty;
use super::typed::Key;
use crate::core::claude::transcript;
use crate::lab::rehearsal::{ErrorStep, Script, Step, TextStep, ToolCall};
use serde_json::{Value, json};
use std::io;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(120);
/// How fast an answer comes: a word each.
const WORD: Duration = Duration::from_millis(45);
/// How long a thought takes that has no time of its own.
const THOUGHT: Duration = Duration::from_millis(1200);
/// Time between two lines of a slow answer.
const SLOW_LINE: Duration = Duration::from_millis(300);

const SPINNER: [char; 4] = ['✢', '✶', '✻', '✽'];
const TURNING: [char; 4] = ['◐', '◓', '◑', '◒'];

/// Entries that are kept for the screen; the transcript has all of them.
const MAX_ENTRIES: usize = 200;

/// Why a turn ends early.
#[derive(Debug)]
pub enum Stop {
    Interrupted,
    /// The terminal or the disk is gone.
    Broken(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Broken(error)
    }
}

pub struct Agent {
    tty: Tty,
    session: Session,
    script: Script,
    entries: Vec<Entry>,
    draft: String,
    asked: Option<Asked>,
    /// Since when it works, with the count of the spinner's turns.
    work: Option<(Instant, usize)>,
}

impl Agent {
    pub fn new(tty: Tty, session: Session, script: Script) -> Agent {
        let turns = transcript::turns(session.transcript().lines());
        let entries = turns.iter().filter_map(|turn| match turn.role.as_str() {
            "user" => Some(Entry::Prompt(turn.text.clone())),
            "assistant" => Some(Entry::Text(turn.text.clone())),
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
            agent.push(Entry::Note(hello.to_owned()));
        }
        agent
    }

    /// Takes one message after the other until the terminal is gone.
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
                Err(Stop::Interrupted) => self.interrupted()?,
                Err(Stop::Broken(error)) => return Err(error),
            }
        }
    }

    /// Asks about the folder before anything else is done in it, and remembers a yes.
    fn is_trusted(&mut self) -> io::Result<bool> {
        let folder = self.session.cwd().display().to_string();
        self.asked = Some(Asked::trust(folder));
        loop {
            self.show()?;
            for key in self.tty.keys(Duration::from_secs(1))? {
                let Some(answer) = self.asked.as_mut().and_then(|asked| asked.press(&key)) else {
                    continue;
                };
                self.asked = None;
                let trusted = answer == Answer::Chosen(TRUSTED.to_owned());
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
                    Key::Enter if !self.draft.trim().is_empty() => {
                        return Ok(std::mem::take(&mut self.draft));
                    }
                    key => self.write(key),
                }
            }
        }
    }

    /// What a key does to the input box.
    fn write(&mut self, key: Key) {
        match key {
            Key::Text(text) => self.draft.push_str(&text),
            Key::Backspace => drop(self.draft.pop()),
            Key::Clear => self.draft.clear(),
            Key::Enter | Key::Esc | Key::Up | Key::Down => {}
        }
    }

    fn turn(&mut self, message: &str) -> Result<(), Stop> {
        self.push(Entry::Prompt(message.to_owned()));
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

    fn step(&mut self, step: Step, goes_on: bool, said: &mut String) -> Result<(), Stop> {
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
            // Nobody is here to open one: it thinks until it is interrupted.
            Step::Gate { .. } => self.think(Duration::MAX)?,
            // It costs nothing.
            Step::Tokens { .. } => {}
            Step::Error(error) => self.fail(&error)?,
        }
        Ok(())
    }

    fn think(&mut self, time: Duration) -> Result<(), Stop> {
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
    ) -> Result<(), Stop> {
        self.push(Entry::Text(String::new()));
        for part in parts {
            if let Some(Entry::Text(text)) = self.entries.last_mut() {
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

    fn fail(&mut self, error: &ErrorStep) -> Result<(), Stop> {
        let text = format!("API Error: {} {}", error.status, error.message);
        self.push(Entry::Text(text.clone()));
        self.session.write_error(&text)?;
        self.session.hook(
            "StopFailure",
            json!({"error": error.error, "last_assistant_message": text}),
        );
        Ok(())
    }

    /// A tool call from the gate to its result.
    fn call(&mut self, call: &ToolCall) -> Result<(), Stop> {
        let id = format!("toolu_{}", Uuid::new_v4().simple());
        let ToolCall { tool, input } = call;
        let content = json!([{"type": "tool_use", "id": id, "name": tool, "input": input}]);
        self.session.write("assistant", content, Some("tool_use"))?;
        let (title, result) = (tools::title(call), None);
        self.push(Entry::Call { title, result });
        self.show()?;
        let told = json!({"tool_name": tool, "tool_input": input, "tool_use_id": id});
        let said = self.session.hook("PreToolUse", told.clone());
        let result = match tools::gate(call, said) {
            Gate::Deny(reason) => Err(reason),
            Gate::Allow => self.use_tool(call)?,
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

    /// Asks for leave; a no ends the turn.
    fn leave(
        &mut self,
        call: &ToolCall,
        why: Option<String>,
        id: &str,
        told: Value,
    ) -> Result<(), Stop> {
        let asked = tools::permission(call, why);
        match self.ask(asked, Some(told))? {
            Answer::Chosen(label) if label == YES => Ok(()),
            Answer::Chosen(_) | Answer::Cancelled => {
                self.write_result(
                    id,
                    "The user doesn't want to proceed with this tool use.",
                    true,
                )?;
                Err(Stop::Interrupted)
            }
        }
    }

    fn use_tool(&mut self, call: &ToolCall) -> Result<Result<String, String>, Stop> {
        match call.tool.as_str() {
            "Bash" => self.run(call),
            "Read" => Ok(tools::read(call, self.session.cwd())),
            "AskUserQuestion" => self.question(&call.input),
            other => Ok(Err(format!("the stand-in has no tool {other}"))),
        }
    }

    fn run(&mut self, call: &ToolCall) -> Result<Result<String, String>, Stop> {
        let mut running = Running::start(call, self.session.cwd())?;
        loop {
            if let Some(result) = running.ended()? {
                return Ok(result);
            }
            self.tick(TICK)?;
        }
    }

    fn question(&mut self, input: &Value) -> Result<Result<String, String>, Stop> {
        let Some(asked) = Asked::question(input) else {
            return Ok(Err("no question was given".to_owned()));
        };
        match self.ask(asked, None)? {
            Answer::Chosen(answer) => Ok(Ok(tools::answered(input, &answer))),
            Answer::Cancelled => Err(Stop::Interrupted),
        }
    }

    /// Shows a dialog until it is answered.
    fn ask(&mut self, asked: Asked, told: Option<Value>) -> Result<Answer, Stop> {
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
        self.push(Entry::Note(
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
        if let Some(Entry::Call {
            result: result @ None,
            ..
        }) = self.entries.last_mut()
        {
            *result = Some(text.to_owned());
        }
    }

    fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        let surplus = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..surplus);
    }

    /// Works on for a while; keys go to the input box, and Esc interrupts.
    fn tick(&mut self, time: Duration) -> Result<(), Stop> {
        if let Some((_, turns)) = &mut self.work {
            *turns = turns.wrapping_add(1);
        }
        self.show()?;
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            for key in self.tty.keys(left)? {
                match key {
                    Key::Esc => return Err(Stop::Interrupted),
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
