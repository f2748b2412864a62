//! The rules of a slot. They are asked on threads: a rule looks at real paths, and a path can hang.

use crate::core::machine::{Input, KnownRules, Opinion, RulesQuestion, Wants};
use crate::core::policy::{self, Ask, Decision, PermissionPolicy, SettingsRules};
use crate::os::blocking;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Threads that one slot may take for its questions, so that a path that hangs leaves the others theirs.
const MAX_THREADS: usize = 4;

/// What a slot is judged by. A policy that decides on tool calls alone leaves every other dialog to a person.
pub trait SlotRules: PermissionPolicy + std::fmt::Debug {
    /// What holds without a look at any path.
    fn known(&self) -> KnownRules {
        KnownRules::default()
    }

    /// Whether a call does no more than read inside the slot's directory.
    fn only_reads_the_project(&self, _ask: &Ask) -> bool {
        false
    }

    /// The narrow rule that `always` adds for a call; why it adds none, if that would not help.
    fn rule_for_always(&self, _ask: &Ask) -> Result<String, String> {
        Err("this policy is no file to which a rule could be added".to_owned())
    }

    /// Whether an *allow* on this call is said to Claude Code, which has the allow rules `shared` in its settings. If not,
    /// Claude Code checks the call too.
    fn is_said(&self, _ask: &Ask, _shared: &[String]) -> bool {
        true
    }

    /// The rules that Claude Code gets in its settings.
    fn for_settings(&self) -> SettingsRules {
        SettingsRules::default()
    }
}

/// What the rules answer to a question.
pub(crate) fn opinion(
    rules: &dyn SlotRules,
    question: &RulesQuestion,
    shared: &[String],
) -> Opinion {
    let ask = &question.ask;
    match question.wants {
        Wants::Verdict => Opinion::Verdict(rules.decide(ask)),
        Wants::RuleForAlways => Opinion::RuleForAlways(rules.rule_for_always(ask)),
        Wants::GateAnswer(circumstances) => {
            let only_reads = || rules.only_reads_the_project(ask);
            let verdict = policy::gate::answer(rules.decide(ask), circumstances, only_reads);
            match verdict.decision == Decision::Allow && !rules.is_said(ask, shared) {
                true => Opinion::Unsaid(verdict),
                false => Opinion::Verdict(verdict),
            }
        }
    }
}

type Answer = Pin<Box<dyn Future<Output = Input> + Send>>;

/// The rules of one slot, and the questions to them that are on their way.
pub(super) struct RuleBook {
    rules: Arc<dyn SlotRules>,
    /// Those of another role, for the next start.
    next: Option<Arc<dyn SlotRules>>,
    /// The allow rules in the settings that the running program was started with.
    shared: Arc<[String]>,
    /// The deny rules in them. Claude Code obeys these whatever the gate says.
    denied: Vec<String>,
    /// Those of them that are no longer in the policy.
    outdated: Vec<String>,
    /// The allow rules with a wildcard that have come to the policy since.
    unshared: Vec<String>,
    under_way: FuturesUnordered<Answer>,
    places: Arc<Semaphore>,
}

impl RuleBook {
    pub fn new(rules: Arc<dyn SlotRules>) -> RuleBook {
        RuleBook {
            rules,
            next: None,
            shared: Arc::default(),
            denied: Vec::new(),
            outdated: Vec::new(),
            unshared: Vec::new(),
            under_way: FuturesUnordered::new(),
            places: Arc::new(Semaphore::new(MAX_THREADS)),
        }
    }

    /// Takes new rules, for the questions that come.
    pub fn replace(&mut self, rules: Arc<dyn SlotRules>) -> KnownRules {
        let before = self.rules.for_settings();
        (self.rules, self.next) = (rules, None);
        self.compare(&before.allow);
        self.rules.known()
    }

    /// Takes these rules for the next start: the running program has another role, whose rules may have changed too.
    pub fn put_off(
        &mut self,
        next: Arc<dyn SlotRules>,
        running: Option<Arc<dyn SlotRules>>,
    ) -> KnownRules {
        let known = self.replace(running.unwrap_or_else(|| self.rules.clone()));
        self.next = Some(next);
        known
    }

    /// A program with another role than the slot's is taken up: a person is asked until the rules of its role are known.
    pub fn suspend(&mut self, instead: Arc<dyn SlotRules>) -> KnownRules {
        let next = self.next.take().unwrap_or_else(|| self.rules.clone());
        self.put_off(next, Some(instead))
    }

    /// The program is started anew: the rules that were put off hold from now on.
    pub fn begin(&mut self) -> Option<KnownRules> {
        let next = self.next.take()?;
        Some(self.replace(next))
    }

    pub fn for_settings(&self) -> SettingsRules {
        self.rules.for_settings()
    }

    /// The program runs with these rules in its settings.
    pub fn shares(&mut self, rules: SettingsRules) {
        (self.shared, self.denied) = (rules.allow.into(), rules.deny);
        self.unshared.clear();
        self.compare(&self.rules.for_settings().allow);
    }

    /// The deny rules that are no longer in the policy, and that the running program obeys until it is started again.
    pub fn outdated(&self) -> &[String] {
        &self.outdated
    }

    /// The allow rules that the running program does not have: it may ask by itself about what they allow until it is started
    /// again. The gate allows by itself what a rule without a wildcard names.
    pub fn unshared(&self) -> &[String] {
        &self.unshared
    }

    /// Compares the policy, which had these allow rules before, with what the running program has.
    fn compare(&mut self, before: &[String]) {
        let now = self.rules.for_settings();
        let outdated = self.denied.iter().filter(|rule| !now.deny.contains(rule));
        self.outdated = outdated.cloned().collect();
        self.unshared.retain(|rule| now.allow.contains(rule));
        let is_new = |rule: &String| {
            let known = before.contains(rule) || self.shared.contains(rule);
            rule.contains('*') && !known && !self.unshared.contains(rule)
        };
        let new: Vec<String> = now.allow.into_iter().filter(is_new).collect();
        self.unshared.extend(new);
    }

    pub fn ask(&mut self, question: RulesQuestion) {
        let (rules, places) = (self.rules.clone(), self.places.clone());
        let shared = self.shared.clone();
        self.under_way.push(Box::pin(async move {
            let id = question.id;
            let opinion = match places.acquire_owned().await {
                Ok(place) => {
                    // A thread that hangs keeps its place, whoever still waits for it.
                    let work = move || (opinion(&*rules, &question, &shared), place).0;
                    blocking::run(work).await.map_err(|error| error.to_string())
                }
                Err(closed) => Err(closed.to_string()),
            };
            let failed = |error| Opinion::None(format!("the rules could not be asked: {error}"));
            let opinion = opinion.unwrap_or_else(failed);
            Input::Judged { id, opinion }
        }));
    }

    /// The next answer; never, if nothing was asked.
    pub async fn answered(&mut self) -> Input {
        match self.under_way.next().await {
            Some(answer) => answer,
            None => std::future::pending().await,
        }
    }
}
