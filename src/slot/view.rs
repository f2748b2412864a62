//! What a slot shows of itself when it is asked.

use super::Slot;
use super::journal::SlotPaths;
use super::kind::ProgramKind;
use super::witness::FileEvidence;
use crate::config::keys_that_differ;
use crate::core::claude::reading::State;
use crate::core::model::{
    Conversation, Evidence, ScreenAnswer, ScreenParams, SessionStatus, SlotStatus,
};
use crate::core::settings::{Gate, Kind, SlotConfig};
use chrono::Utc;
use std::io;
use std::time::Instant;

impl<K: ProgramKind> Slot<K> {
    pub(super) fn publish(&mut self) {
        let new_settings = self.new_settings();
        let now = SlotStatus {
            state: self.machine.state(),
            since: self.shown.since(),
            started_at: self.program.started_at().filter(|_| self.machine.is_up()),
            pid: self.machine.pid(),
            shim_pid: self.link.shim_pid().filter(|_| self.link.is_open()),
            restarts: self.machine.restarts(),
            session_id: self.memory.session().map(|session| session.id.to_string()),
            dialog: self.machine.dialog().cloned(),
            gate: K::gate(self).to_owned(),
            mode: self.machine.mode().map(str::to_owned),
            last_error: self.machine.last_error(),
            doing: self
                .catching_up()
                .or_else(|| self.machine.doing(Instant::now())),
            background: self.machine.background(),
            queued: self.machine.queued(),
            unanswered: self.machine.unanswered(),
            task_id: self.machine.task().map(str::to_owned),
            waits_because: self.machine.why_a_person(),
            always: self.machine.always(),
            answered: self.shown.answered(),
            conversation: K::conversation(self),
            doubtful: self.machine.distrust(),
            waiting_calls: self.machine.calls_not_shown(),
            session: self.own.session_status(self.screen.terminal().size()),
            exit_code: self
                .program
                .last_end()
                .report()
                .and_then(|report| report.code),
            cause: self.machine.cause().map(str::to_owned),
            cost: (self.program.settings().supervision.counts_cost())
                .then(|| self.machine.past().cost.as_f64()),
            hung_recording: self.link.hung_recording(),
            attached: self.screen.viewers(),
            keyboard: self.screen.keyboard().holder().cloned(),
            changed: !new_settings.is_empty() || self.has_new_settings(),
            new_settings,
            cwd: self.machine.running().cwd.clone(),
            role: self.machine.running().role.clone(),
            ..first_status(self.machine.config(), self.log.paths())
        };
        self.shown.publish(now);
    }

    fn has_new_settings(&self) -> bool {
        let config = self.machine.config();
        self.machine.is_up() && !config.removed && config != self.program.settings()
    }

    /// The names of the settings and rules that the running program does not have yet, and the rules that it still has.
    fn new_settings(&self) -> Vec<String> {
        let mut names = match self.has_new_settings() {
            true => keys_that_differ(&**self.program.settings(), &**self.machine.config()),
            false => Vec::new(),
        };
        if self.machine.is_up() {
            let outdated = self.rules.outdated().iter();
            names.extend(outdated.map(|rule| format!("no longer deny {rule}")));
            let unshared = self.unshared_rules().iter();
            names.extend(unshared.map(|rule| format!("allow {rule}")));
        }
        names
    }

    /// The allow rules that the running program would be given at its next start.
    pub(super) fn unshared_rules(&self) -> &[String] {
        match self.program.settings().gate {
            Gate::Screen => &[],
            _ => self.rules.unshared(),
        }
    }

    pub(super) fn screen_answer(&self, params: &ScreenParams) -> ScreenAnswer {
        let screen = self.screen.terminal().screen();
        let lines = match params.lines {
            Some(count) => self.screen.terminal().lines(count),
            None if params.ansi => self.screen.terminal().styled_lines(),
            None => screen.lines.iter().map(|line| line.text.clone()).collect(),
        };
        ScreenAnswer {
            slot: self.program.settings().name.clone(),
            cols: screen.cols,
            rows: screen.rows,
            title: screen.title,
            cursor: (screen.cursor.row, screen.cursor.col),
            lines,
        }
    }

    /// What each witness says of the slot's state, with what the files say.
    pub(super) fn evidence(&self, files: &io::Result<FileEvidence>) -> Vec<Evidence> {
        let (none, unread) = (FileEvidence::default(), files.as_ref().err());
        let files = files.as_ref().unwrap_or(&none);
        let screen = self.screen.terminal().screen();
        let mut evidence = vec![says("machine", self.machine.state().name().to_owned())];
        let reading = crate::core::claude::reading::read(&screen);
        evidence.extend(
            reading
                .because
                .iter()
                .map(|because| says("screen", because.clone())),
        );
        let witnesses = K::witness_all(self, files);
        let others = witnesses.iter().skip(1);
        evidence.extend(others.map(|witness| says(witness.name, witness.to_string())));
        evidence.push(says(
            "cursor",
            format!("row {}, column {}", screen.cursor.row, screen.cursor.col),
        ));
        let more = [
            ("activity", self.screen.wrote().map(activity)),
            ("files", unread.map(io::Error::to_string)),
            ("transcript", files.last_of_transcript()),
            ("conversation", in_words(&K::conversation(self))),
            ("removed", self.machine.config().removed.then(why_removed)),
            ("policy", self.machine.why_a_person()),
            ("DOUBTFUL", self.machine.distrust()),
        ];
        evidence.extend(
            more.into_iter()
                .filter_map(|(name, words)| Some(says(name, words?))),
        );
        if let Some(report) = self.program.last_end().report() {
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

fn activity(wrote: Instant) -> String {
    format!("last output {:.1} s ago", wrote.elapsed().as_secs_f64())
}

fn why_removed() -> String {
    "it is not in the config, so no policy holds for it: a person is asked about everything, and it is not started again"
        .to_owned()
}

/// Of a slot that has not yet looked whether its program runs.
pub(super) fn first_status(config: &SlotConfig, paths: &SlotPaths) -> SlotStatus {
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
        unanswered: 0,
        foreground: None,
        stopped: None,
        hung_recording: None,
        health: Vec::new(),
        attached: 0,
        keyboard: None,
        changed: false,
        new_settings: Vec::new(),
        waits_because: None,
        always: None,
        answered: None,
        exit_code: None,
        cause: None,
        cost: None,
        memory: None,
        cpu: None,
        conversation: Conversation::default(),
        doubtful: None,
        waiting_calls: Vec::new(),
        session: config.terms.as_ref().map(SessionStatus::first),
        removed: config.removed,
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
