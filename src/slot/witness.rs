//! What can be learned of a slot beside its screen, read where it lies.

use super::Slot;
use crate::core::claude::HookWhat;
use crate::core::claude::reading::witness::{self, Weighed, Witness};
use crate::core::claude::reading::{Login, State};
use crate::core::claude::transcript;
use crate::core::claude::transcript::Figures;
use crate::core::machine::{Input, Known, target_of};
use crate::core::model::{Conversation, WaitingCall};
use crate::core::settings::{Gate, Kind};
use crate::core::text::secrets;
use crate::os::directory_watch::DirectoryWatch;
use crate::os::process_stat::Stat;
use chrono::{DateTime, Utc};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

/// How soon the witnesses are asked again while they differ: Claude Code notes a change within 0.2 s.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// What is read of a file at most: a record has less than 1 KB, and the last line of a transcript is
/// cut where it is longer.
const MAX_READ: u64 = 64 * 1024;

/// How often the transcript is looked at while a request is under way: it is tried again for minutes.
const LOOK_FOR_LOGIN: Duration = Duration::from_secs(2);

/// The last hook that was heard.
#[derive(Debug)]
pub(super) struct LastHook {
    time: DateTime<Utc>,
    says: String,
    /// No turn has begun since one ended.
    between_turns: bool,
}

/// What is remembered of the witnesses between two times of asking.
#[derive(Debug, Default)]
pub(super) struct Witnesses {
    pub(super) hook: Option<LastHook>,
    /// When the program wrote last.
    pub(super) wrote: Option<Instant>,
    /// What the machine was told last.
    doubt: Option<String>,
    /// As the last answer had them.
    figures: Option<Figures>,
    ask_again: Option<Instant>,
    /// Why a request is tried again, as the transcript has it, and when that was looked at.
    login: Option<Login>,
    looked_for_login: Option<Instant>,
    /// Where Claude Code keeps its records, once it has begun to.
    records: Option<DirectoryWatch>,
}

impl Witnesses {
    pub(super) fn heard(&mut self, what: &HookWhat) {
        if matches!(what, HookWhat::Displayed { .. }) {
            return;
        }
        let before = self.hook.as_ref().is_some_and(|hook| hook.between_turns);
        let between_turns = match what {
            HookWhat::SessionStart | HookWhat::TurnOver { .. } => true,
            HookWhat::PromptTaken | HookWhat::BeforeTool { .. } | HookWhat::AfterTool { .. } => {
                false
            }
            HookWhat::Cost(_) | HookWhat::Displayed { .. } | HookWhat::Other => before,
        };
        self.hook = Some(LastHook {
            time: Utc::now(),
            says: what.to_string().chars().take(120).collect(),
            between_turns,
        });
    }

    /// When they are to be asked again, though nothing has changed on the screen.
    pub(super) fn due(&self) -> Option<Instant> {
        self.ask_again
    }

    /// Returns when Claude Code has noted something: a record may change with nothing new on the screen.
    pub(super) async fn noted(&self) {
        match &self.records {
            Some(records) => records.changed().await,
            None => std::future::pending().await,
        }
    }

    /// The program they spoke of has ended.
    pub(super) fn forget(&mut self) {
        *self = Witnesses::default();
    }
}

impl Slot {
    /// Asks everyone, and tells the machine where the outcome has changed.
    pub(super) async fn ask_witnesses(&mut self) {
        let doubt = match witness::weigh(&self.witness_all()) {
            Weighed::Doubt { why } if self.machine.is_up() => Some(why),
            _ => self.machine.strange_options(),
        };
        self.witnesses.ask_again = doubt.as_ref().map(|_| Instant::now() + ASK_AGAIN);
        self.watch_records();
        if self.witnesses.doubt != doubt {
            self.witnesses.doubt = doubt.clone();
            self.input(Input::Witnessed(doubt)).await;
        }
    }

    /// The screen, and those who can confirm it. Nothing is known of a plain program.
    pub(super) fn witness_all(&self) -> Vec<Witness> {
        if self.running.kind == Kind::Shell {
            return Vec::new();
        }
        let mut witnesses = vec![witness::screen(self.observer.observed())];
        witnesses.extend(self.gate_on_dialog());
        witnesses.push(witness::title(&self.screen.terminal().title()));
        witnesses.extend(self.session_record());
        witnesses.extend(self.calls_in_transcript());
        if let Some(hook) = &self.witnesses.hook {
            let says = format!("{} {}", hook.time.to_rfc3339(), hook.says);
            let agents_ask = self.machine.agents_ask();
            witnesses.push(witness::hook(hook.between_turns, agents_ask, says));
        }
        witnesses
    }

    /// Every call comes to the gate before its dialog does.
    fn gate_on_dialog(&self) -> Option<Witness> {
        if let Some(call) = self.machine.hidden_question() {
            return Some(witness::gate_that_waits(&call));
        }
        let known = self.machine.gate_knows_dialog()?;
        let calls = self.machine.waiting_calls();
        let in_a_line = |call: &WaitingCall| match target_of(&call.input) {
            Some(target) => format!("{}: {target}", call.tool),
            None => call.tool.clone(),
        };
        let waiting: Vec<String> = calls.iter().map(in_a_line).collect();
        Some(match known {
            Known::Waits => witness::gate_that_asked(),
            Known::Allowed => witness::gate_that_allowed(),
            Known::Not => witness::gate_without(&waiting),
        })
    }

    /// What Claude Code notes of the session. Absent before its first screen, and in older versions.
    fn session_record(&self) -> Option<Witness> {
        let pid = self.machine.pid()?;
        let file = self.records.as_ref()?.join(format!("{pid}.json"));
        let json = read_end(&file).ok()?;
        witness::record(&json, process_start(pid).as_deref())
    }

    /// Without it, where the kernel has no more of them to give, the record is read whenever the screen changes.
    fn watch_records(&mut self) {
        let claude = self.machine.is_up() && self.running.kind == Kind::Claude;
        if claude && self.witnesses.records.is_none() {
            // Older versions keep none, and this is asked at every frame.
            let records = self.records.as_ref().filter(|place| place.is_dir());
            self.witnesses.records =
                records.and_then(|place| DirectoryWatch::for_changes(place).ok());
        }
    }

    /// Where a rule may allow by the screen alone, the transcript has to know the call.
    fn calls_in_transcript(&self) -> Option<Witness> {
        if self.running.gate != Gate::Screen || self.machine.is_gated() {
            return None;
        }
        let dialog = self.observer.observed().dialog.as_ref()?;
        let text = self.transcript().and_then(|file| read_end(&file).ok());
        let turns = transcript::turns(text.unwrap_or_default().lines());
        let waiting = turns
            .iter()
            .rev()
            .take_while(|turn| turn.role == "tool_call");
        let open: Vec<_> = waiting
            .filter_map(|turn| Some((turn.tool.as_deref()?, turn.input.as_ref()?)))
            .collect();
        witness::transcript(dialog, &open)
    }

    /// The last entry of the conversation, in a line.
    pub(super) fn last_of_transcript(&self) -> Option<String> {
        let session = self.memory.session()?;
        let text = read_end(&self.transcript_of(session.id)?).ok()?;
        let turn = transcript::turns(text.lines()).pop()?;
        let said: String = secrets::mask(&turn.text).chars().take(80).collect();
        let tool = turn.tool.map(|tool| format!(" {tool}")).unwrap_or_default();
        Some(format!("{}{tool}: {said}", turn.role))
    }

    /// After a turn: what its answer tells of the conversation.
    pub(super) fn note_figures(&mut self) {
        let text = self.transcript().and_then(|file| read_end(&file).ok());
        let told = text.and_then(|text| transcript::figures(text.lines()));
        self.witnesses.figures = told.or(self.witnesses.figures.take());
    }

    /// While a request is tried again, older versions say in the transcript alone that the login was refused.
    pub(super) fn note_login(&mut self) {
        let observed = self.observer.observed();
        if observed.state != State::Thinking || observed.reading.notices.login.is_some() {
            self.witnesses.login = None;
            return;
        }
        let looked = self.witnesses.looked_for_login;
        if looked.is_some_and(|at| at.elapsed() < LOOK_FOR_LOGIN) {
            return;
        }
        self.witnesses.looked_for_login = Some(Instant::now());
        let text = self.transcript().and_then(|file| read_end(&file).ok());
        let why = text.and_then(|text| transcript::tried_again(text.lines()));
        self.witnesses.login = why.and_then(|why| Login::read(&why));
    }

    pub(super) fn conversation(&self) -> Conversation {
        let figures = self.witnesses.figures.as_ref();
        let notices = &self.observer.observed().reading.notices;
        Conversation {
            model: figures.map(|figures| figures.model.clone()),
            context_tokens: figures.map(|figures| figures.context_tokens),
            context_left: notices.context_left,
            compacting: notices.compacting,
            login: notices.login.or(self.witnesses.login),
        }
    }

    pub(super) fn last_activity(&self) -> Option<String> {
        let ago = self.witnesses.wrote?.elapsed().as_secs_f64();
        Some(format!("last output {ago:.1} s ago"))
    }
}

fn read_end(file: &Path) -> io::Result<String> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(MAX_READ)))?;
    let mut bytes = Vec::new();
    file.take(MAX_READ).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// When a process began that still runs, in the kernel's own count since boot; `None` where that can't be told.
pub(crate) fn process_start(pid: u32) -> Option<String> {
    let stat = Stat::of(pid).filter(|stat| !stat.has_ended())?;
    stat.field(Stat::START).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn the_start_of_a_process_is_a_number_that_stays() {
        let own = process_start(std::process::id()).expect("this process runs");
        assert!(own.parse::<u64>().is_ok_and(|start| start > 0), "{own}");
        assert_eq!(process_start(std::process::id()), Some(own));
    }

    #[test]
    fn a_hook_that_says_nothing_changes_nothing() {
        let mut witnesses = Witnesses::default();
        let mut between = |what: HookWhat| {
            witnesses.heard(&what);
            witnesses
                .hook
                .as_ref()
                .is_some_and(|hook| hook.between_turns)
        };
        assert!(between(HookWhat::SessionStart));
        assert!(between(HookWhat::Other));
        assert!(!between(HookWhat::PromptTaken));
        assert!(!between(HookWhat::Other));
        let (text, failure) = (None, None);
        assert!(between(HookWhat::TurnOver { text, failure }));
    }
}
