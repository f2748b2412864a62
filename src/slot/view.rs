//! What a slot shows of itself when it is asked.

use super::handle::Answer;
use super::journal::Paths;
use super::machine::Known;
use super::task::Slot;
use crate::config::{Gate, Kind, SlotConfig};
use crate::control::protocol::{
    Conversation, Evidence, Match, ScreenAnswer, ScreenParams, SlotStatus, Turn,
};
use crate::reading::State;
use crate::secrets;
use crate::transcript;
use chrono::Utc;
use regex::Regex;
use std::time::Instant;

/// Lines of scrollback that a search goes through: all that the terminal keeps.
const ALL_LINES: usize = 10_000;

/// Clients that may wait for the end of a turn to read of it; further ones get what is there.
const MAX_READERS: usize = 64;

impl Slot {
    pub(super) fn publish(&mut self) {
        let now = SlotStatus {
            state: self.machine.state(),
            since: self.since,
            started_at: self.started_at.filter(|_| self.machine.is_up()),
            pid: self.machine.pid(),
            shim_pid: self.shim_pid.filter(|_| self.link.is_some()),
            restarts: self.machine.restarts(),
            session_id: self.memory.session().map(|session| session.id.to_string()),
            dialog: self.machine.dialog().cloned(),
            gate: self.gate().to_owned(),
            mode: self.machine.mode().map(str::to_owned),
            last_error: self.machine.last_error(),
            doing: self.machine.doing(Instant::now()),
            background: self.machine.background(),
            queued: self.machine.queued(),
            task_id: self.machine.task().map(str::to_owned),
            waits_because: self.machine.why_a_person(),
            conversation: self.conversation(),
            doubtful: self.machine.distrust(),
            waiting_calls: match self.machine.gate_knows_dialog() {
                Some(Known::Not) => self.machine.waiting_calls(),
                _ => Vec::new(),
            },
            session: self
                .session
                .as_ref()
                .map(|session| session.status(self.terminal.size())),
            exit_code: self.last_exit.as_ref().and_then(|report| report.code),
            cause: self.machine.cause().map(str::to_owned),
            cost: self
                .running
                .care
                .max_cost
                .map(|_| self.machine.past().cost.as_f64()),
            attached: self.audience.len(),
            changed: self.machine.is_up() && **self.machine.config() != *self.running,
            ..first_status(self.machine.config(), &self.paths)
        };
        self.status.send_if_modified(|status| {
            let changed = *status != now;
            *status = now;
            changed
        });
    }

    pub(super) fn gate(&self) -> &'static str {
        match self.running.kind {
            Kind::Shell => "none",
            // The project's own settings can change what the hook has judged.
            Kind::Claude if self.machine.is_gated() && self.running.project_settings => "weak",
            Kind::Claude if self.machine.is_gated() => "hook",
            Kind::Claude if self.running.gate == Gate::Screen => "screen",
            Kind::Claude => "ungated",
        }
    }

    pub(super) fn screen(&self, params: &ScreenParams) -> ScreenAnswer {
        let screen = self.terminal.screen();
        let lines = match params.lines {
            Some(count) => self.terminal.lines(count),
            None if params.ansi => self.terminal.styled_lines(),
            None => screen.lines.iter().map(|line| line.text.clone()).collect(),
        };
        ScreenAnswer {
            slot: self.running.name.clone(),
            cols: screen.cols,
            rows: screen.rows,
            title: screen.title,
            cursor: (screen.cursor.row, screen.cursor.col),
            lines,
        }
    }

    /// The screen with its scrollback, and the conversation.
    pub(super) fn search(&self, pattern: &Regex, limit: usize) -> Vec<Match> {
        // Masked first: a pattern must not find out what it is not shown.
        let screen = secrets::mask_rows(&self.terminal.lines(ALL_LINES));
        let on_screen = matches_in("screen", &screen, pattern);
        let history: Vec<String> = self
            .history(None)
            .iter()
            .flat_map(|turn| turn.text.lines().map(str::to_owned))
            .collect();
        on_screen
            .chain(matches_in("history", &history, pattern))
            .take(limit)
            .collect()
    }

    /// The conversation. The transcript has the end of a turn a moment after the screen does: who asks in between
    /// waits for it.
    pub(super) fn tell_history(&mut self, last: Option<usize>, reply: Answer<Vec<Turn>>) {
        self.readers.retain(|(_, reply)| !reply.is_closed());
        if self.machine.awaits_answer() && self.readers.len() < MAX_READERS {
            return self.readers.push((last, reply));
        }
        // A client that went away needs no answer.
        let _ = reply.send(Ok(self.history(last)));
    }

    pub(super) fn tell_readers(&mut self) {
        if self.readers.is_empty() || self.machine.awaits_answer() {
            return;
        }
        for (last, reply) in std::mem::take(&mut self.readers) {
            let _ = reply.send(Ok(self.history(last)));
        }
    }

    /// The conversation, over all sessions that the slot has had.
    fn history(&self, last: Option<usize>) -> Vec<Turn> {
        let mut turns = Vec::new();
        for session in &self.memory.sessions {
            let Some(path) = self.transcript_of(session.id) else {
                continue;
            };
            let Ok(text) = std::fs::read_to_string(path) else {
                continue;
            };
            turns.extend(transcript::turns(text.lines()));
        }
        for turn in &mut turns {
            turn.text = secrets::mask(&turn.text);
            turn.input = turn.input.as_ref().map(secrets::mask_json);
        }
        let skip = last.map_or(0, |last| turns.len().saturating_sub(last));
        turns.split_off(skip)
    }

    /// What each witness says of the slot's state.
    pub(super) fn evidence(&self) -> Vec<Evidence> {
        let screen = self.terminal.screen();
        let mut evidence = vec![says("machine", self.machine.state().name().to_owned())];
        let reading = crate::reading::read(&screen);
        evidence.extend(
            reading
                .because
                .iter()
                .map(|because| says("screen", because.clone())),
        );
        let witnesses = self.witness_all();
        let others = witnesses.iter().skip(1);
        evidence.extend(others.map(|witness| says(witness.name, witness.to_string())));
        evidence.push(says(
            "cursor",
            format!("row {}, column {}", screen.cursor.row, screen.cursor.col),
        ));
        let more = [
            ("activity", self.last_activity()),
            ("transcript", self.last_of_transcript()),
            ("conversation", in_words(&self.conversation())),
            ("policy", self.machine.why_a_person()),
            ("DOUBTFUL", self.machine.distrust()),
        ];
        evidence.extend(
            more.into_iter()
                .filter_map(|(name, words)| Some(says(name, words?))),
        );
        if let Some(report) = &self.last_exit {
            let how = match (report.code, report.signal) {
                (_, Some(signal)) => format!("ended by signal {signal}"),
                (Some(code), None) => format!("ended with exit code {code}"),
                (None, None) => "ended in a way that is not known".to_owned(),
            };
            evidence.push(says("process", how));
        }
        evidence
    }
}

/// Of a slot that has not yet looked whether its program runs.
pub(super) fn first_status(config: &SlotConfig, paths: &Paths) -> SlotStatus {
    SlotStatus {
        slot: config.name.clone(),
        role: config.role.clone(),
        kind: kind_name(config.kind).to_owned(),
        state: State::Starting,
        since: Utc::now(),
        started_at: None,
        pid: None,
        shim_pid: None,
        restarts: 0,
        session_id: None,
        task_id: None,
        cwd: config.cwd.clone(),
        dialog: None,
        gate: "none".to_owned(),
        mode: None,
        last_error: None,
        owner: config
            .terms
            .as_ref()
            .map_or("user", |terms| &terms.owner)
            .to_owned(),
        log: paths.log.clone(),
        doing: None,
        background: 0,
        queued: 0,
        attached: 0,
        changed: false,
        waits_because: None,
        exit_code: None,
        cause: None,
        cost: None,
        memory: None,
        cpu: None,
        conversation: Conversation::default(),
        doubtful: None,
        waiting_calls: Vec::new(),
        session: config.terms.as_ref().map(super::session::first_status),
    }
}

/// `None` where nothing is told.
fn in_words(conversation: &Conversation) -> Option<String> {
    let Conversation {
        model,
        context_tokens,
        context_left,
        compacting,
        login,
    } = conversation;
    let words = [
        model.clone(),
        context_tokens.map(|tokens| format!("{tokens} tokens in its context")),
        context_left.map(|left| format!("{left}% of it left")),
        compacting.then(|| "it is being made shorter".to_owned()),
        login.map(|login| format!("login {}", login.name())),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    (!words.is_empty()).then(|| words.join(", "))
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Claude => "claude",
        Kind::Shell => "shell",
    }
}

fn says(witness: &str, says: String) -> Evidence {
    Evidence {
        witness: witness.to_owned(),
        says,
    }
}

fn matches_in<'a>(
    place: &'a str,
    lines: &'a [String],
    pattern: &'a Regex,
) -> impl Iterator<Item = Match> + 'a {
    let matching = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| pattern.is_match(line));
    matching.map(move |(index, line)| Match {
        place: place.to_owned(),
        line: index + 1,
        text: line.clone(),
    })
}
