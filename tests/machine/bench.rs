//! A machine on a bench: a clock that only moves when a script says so, and names for those who ask.

use super::{effects, inputs, script};
use missiond::core::machine::{
    Input, KeysReach, KnownRules, Machine, Opinion, Phase, RulesQuestion, Wants,
};
use missiond::core::policy::{Decision, Verdict};
use missiond::core::settings::{Gate, OnStall, Restart, SlotConfig};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A machine that wants to be woken more often than this in one wait does nothing else.
const MAX_WAKES: usize = 1000;

pub struct Bench {
    config: SlotConfig,
    machine: Option<Machine>,
    now: Instant,
    /// The requests so far, each by its name; its number is its place from 1 on.
    names: Vec<String>,
    /// Questions to the rules that have no answer.
    asked: Vec<RulesQuestion>,
    /// The phases that the machine was in after its inputs.
    pub phases: BTreeSet<Phase>,
}

type Lines = Result<Vec<String>, String>;

impl Bench {
    pub fn new() -> Bench {
        Bench {
            config: SlotConfig::usual("a", "/w"),
            machine: None,
            now: Instant::now(),
            names: Vec::new(),
            asked: Vec::new(),
            phases: BTreeSet::new(),
        }
    }

    /// Takes one line in and gives the lines out.
    pub fn put(&mut self, line: &str) -> Lines {
        let words = script::words(line);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["given", "an", "idle", "slot"] => self.idle(),
            ["given", key, value] => self.set(key, value),
            ["after", time] => self.pass(duration(time)?),
            ["rules", "change"] => Ok(self.handle(Input::Rules(KnownRules::default()))),
            ["rules", decision] => self.judge(decision),
            ["keys"] => Ok(self.keys()),
            [ref name @ .., "gives", "up"] => self.give_up(&name.join(" ")),
            [count, "times", ref rest @ ..] => {
                let count: usize = count.parse().map_err(|_| "how many times?".to_owned())?;
                let each = (0..count).map(|_| self.input(rest));
                Ok(each.collect::<Result<Vec<_>, _>>()?.concat())
            }
            ref words => self.input(words),
        }
    }

    fn input(&mut self, words: &[&str]) -> Lines {
        let token = self.names.len() as u64 + 1;
        let input = inputs::read(words, token, self.now)?;
        if inputs::is_request(&input) {
            let name = words[0].to_owned();
            let before = self.names.iter().filter(|known| is_named(known, &name));
            let number = before.count() + 1;
            self.names.push(match number {
                1 => name,
                number => format!("{name} {number}"),
            });
        }
        Ok(self.handle(input))
    }

    fn handle(&mut self, input: Input) -> Vec<String> {
        let now = self.now;
        let effects = self.machine().handle(input, now);
        let phase = self.machine().phase();
        self.phases.insert(phase);
        let name = |token: u64| match token {
            0 => "nobody".to_owned(),
            token => self.names[token as usize - 1].clone(),
        };
        let lines = effects.iter().map(|effect| effects::words(effect, name));
        let lines: Vec<String> = lines.collect();
        self.asked.extend(effects.into_iter().filter_map(asked));
        lines
    }

    fn machine(&mut self) -> &mut Machine {
        let config = Arc::new(self.config.clone());
        let new = || Machine::new(config, KnownRules::default(), 7);
        self.machine.get_or_insert_with(new)
    }

    /// A program that runs and waits for a message. How it got there is told in `starting.txt`.
    fn idle(&mut self) -> Lines {
        for line in ["start", "started", "screen idle"] {
            self.put(line)?;
        }
        Ok(Vec::new())
    }

    fn set(&mut self, key: &str, value: &str) -> Lines {
        if self.machine.is_some() {
            return Err("settings come before everything else".to_owned());
        }
        match (key, value) {
            ("restart", "never") => self.config.restart = Restart::Never,
            ("gate", "screen") => self.config.gate = Gate::Screen,
            ("on_stall", "interrupt") => self.config.supervision.on_stall = OnStall::Interrupt,
            ("prompt", text) => self.config.prompt = Some(text.to_owned()),
            ("idle_stop", time) => self.config.supervision.idle_stop = Some(duration(time)?),
            _ => return Err("no such setting here".to_owned()),
        }
        Ok(Vec::new())
    }

    /// As the slot's task does: the machine is woken whenever it has asked for it.
    fn pass(&mut self, time: Duration) -> Lines {
        let end = self.now + time;
        let mut lines = Vec::new();
        for _ in 0..MAX_WAKES {
            let due = self.machine().poll_timeout().filter(|due| *due <= end);
            self.now = due.unwrap_or(end).max(self.now);
            lines.extend(self.handle(Input::TimePassed));
            if due.is_none() {
                return Ok(lines);
            }
        }
        Err(format!(
            "the machine was woken {MAX_WAKES} times, and wants to be woken again"
        ))
    }

    /// The rules answer the oldest question.
    fn judge(&mut self, decision: &str) -> Lines {
        let mut all = Decision::ALL.into_iter();
        let decision = all.find(|known| known.word() == decision);
        let decision = decision.ok_or("allow, ask, deny or none?")?;
        if self.asked.is_empty() {
            return Err("the rules were not asked".to_owned());
        }
        let id = self.asked.remove(0).id;
        let opinion = Opinion::Verdict(Verdict::without_rule(decision, "a rule"));
        Ok(self.handle(Input::Judged { id, opinion }))
    }

    /// Somebody wants to write keys into the slot's terminal.
    fn keys(&mut self) -> Vec<String> {
        let machine = self.machine();
        let reach = machine.keys_reach();
        let error = match reach {
            KeysReach::NoDialog | KeysReach::Busy => {
                return vec!["keys: may be written".to_owned()];
            }
            KeysReach::Dialog(_) | KeysReach::Unknown | KeysReach::DialogComes(_) => {
                machine.needs_the_flag(&reach)
            }
        };
        vec![format!(
            "keys: refused {}",
            error.refusal.unwrap_or_default()
        )]
    }

    fn give_up(&mut self, name: &str) -> Lines {
        let at = self.names.iter().position(|known| known == name);
        let at = at.ok_or("nobody of that name has asked")?;
        Ok(self.handle(Input::Withdraw(at as u64 + 1)))
    }
}

/// Whether it is the first, second, … request of this name.
fn is_named(known: &str, name: &str) -> bool {
    known.split(' ').next() == Some(name)
}

/// What `always` would add is no script's matter.
fn asked(effect: missiond::core::machine::Effect) -> Option<RulesQuestion> {
    match effect {
        missiond::core::machine::Effect::Judge(question) => {
            (question.wants != Wants::RuleForAlways).then_some(*question)
        }
        _ => None,
    }
}

pub fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| error.to_string())
}
