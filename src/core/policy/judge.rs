//! The verdict on a tool call.

use super::command;
use super::ground::Ground;
use super::harm;
use super::hosts::host_of;
use super::paths::{Paths, Place};
use super::protected;
use super::rule::{Meaning, Rule};
use super::secrets;
use super::tools::{self, Access, Subject};
use super::{Ask, Decision, Fallback, Policy, Verdict};
use std::path::Path;

/// A verdict, with the verdict on each part of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub verdict: Verdict,
    /// Empty for tools that do not run a command.
    pub parts: Vec<PartVerdict>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartVerdict {
    pub text: String,
    pub verdict: Verdict,
    /// How the shell accesses the file, if the part is a file that the shell itself opens.
    pub opens: Option<Access>,
    /// The part needs no rule, so its verdict does not count beside others.
    pub is_neutral: bool,
}

/// Decides on a tool call: deny beats ask, ask beats allow. If no rule matches, the policy's default decides.
pub fn decide(policy: &Policy, ask: &Ask, paths: &dyn Paths) -> Verdict {
    judge(policy, ask, paths, false).verdict
}

/// The same as [`decide`], with the verdict on each part.
pub fn explain(policy: &Policy, ask: &Ask, paths: &dyn Paths) -> Explanation {
    judge(policy, ask, paths, true)
}

/// Whether a call only reads inside the slot's directory, or touches nothing but the conversation. Claude Code does not ask about
/// such a call, and a policy without rules does not either.
pub fn only_reads_the_project(ask: &Ask, paths: &dyn Paths) -> bool {
    let silent = Policy::asking(&ask.cwd, &ask.cwd);
    decide(&silent, ask, paths).decision == Decision::Silent
}

/// Whether the gate answers *allow* to Claude Code for this call. If not, the gate stays silent, and Claude Code decides by its
/// own checks and the same rules. `shared` are the rules in the settings that Claude Code was started with: it does not read
/// newer ones.
pub fn is_said(policy: &Policy, ask: &Ask, paths: &dyn Paths, shared: &[String]) -> bool {
    let is_shared = || {
        let allows = |policy: &Policy| decide(policy, ask, paths).decision == Decision::Allow;
        policy.shares_all(shared) || allows(&policy.sharing_only(shared))
    };
    match tools::subject(ask) {
        Subject::Command(text) => {
            command::is_said(&case_of(policy, ask, paths, false), text, is_shared())
        }
        Subject::Path(..) => !is_shared(),
        _ => true,
    }
}

fn case_of<'a>(policy: &'a Policy, ask: &'a Ask, paths: &'a dyn Paths, explains: bool) -> Case<'a> {
    Case {
        policy,
        ask,
        ground: Ground::new(paths, &ask.cwd, &policy.project, policy.protected.places()),
        explains,
    }
}

fn judge(policy: &Policy, ask: &Ask, paths: &dyn Paths, explains: bool) -> Explanation {
    let case = case_of(policy, ask, paths, explains);
    let mut explanation = match tools::subject(ask) {
        Subject::Command(text) => command::judge(&case, text),
        Subject::Path(access, path) => whole(case.path(access, path)),
        Subject::Url(url) => whole(case.url(url)),
        Subject::Name(name) => {
            whole(case.by_rules(|rule| rule.covers_name(&ask.tool, name), || false))
        }
        Subject::Tool => whole(case.by_tool()),
        Subject::Missing(key) => {
            whole(case.not_allowed(case.by_tool(), format!("the input has no `{key}` to judge")))
        }
    };
    if !tools::is_name(&ask.tool) {
        let why = "the tool has a name that no tool of Claude Code has".to_owned();
        explanation.verdict = case.not_allowed(explanation.verdict, why);
    }
    if !ask.complete {
        let why =
            "only a part of the input is known, so it can't be allowed without a person".to_owned();
        explanation.verdict = case.not_allowed(explanation.verdict, why);
    }
    explanation
}

fn whole(verdict: Verdict) -> Explanation {
    Explanation {
        verdict,
        parts: Vec::new(),
    }
}

/// A policy, a call and the places that the call may name.
pub struct Case<'a> {
    pub policy: &'a Policy,
    pub ask: &'a Ask,
    pub ground: Ground<'a>,
    /// Whether the caller wants the verdict on each part.
    pub explains: bool,
}

impl Case<'_> {
    /// The rules that match this call: those that name its tool as a whole (only the nearest level counts), and those whose
    /// specifier covers it.
    pub fn rules_in_force(&self, covers: impl Fn(&Rule) -> bool) -> Vec<&Rule> {
        let covered = |rule: &&Rule| rule.covers_tool(&self.ask.tool) || covers(rule);
        self.nearest_only(self.policy.rules().filter(covered).collect())
    }

    /// Of the rules that name the tool as a whole, those of the nearest level; all other rules stay.
    pub fn nearest_only<'r>(&self, mut rules: Vec<&'r Rule>) -> Vec<&'r Rule> {
        let nearest = rules
            .iter()
            .filter(|rule| rule.meaning().is_whole_tool())
            .map(|rule| rule.level.clone())
            .max();
        rules.retain(|rule| {
            !rule.meaning().is_whole_tool() || Some(&rule.level) == nearest.as_ref()
        });
        rules
    }

    /// The verdict of the strictest rule in force, or the default. `only_reads` tells whether the call only reads inside the
    /// slot's directory.
    pub fn by_rules(
        &self,
        covers: impl Fn(&Rule) -> bool,
        only_reads: impl FnOnce() -> bool,
    ) -> Verdict {
        match strictest(&self.rules_in_force(covers)) {
            Some(rule) => by_rule(rule),
            None => self.by_default(only_reads),
        }
    }

    /// The same for a call that can be judged by its tool only.
    pub fn by_tool(&self) -> Verdict {
        self.by_rules(|_| false, || tools::stays_in_session(&self.ask.tool))
    }

    /// The verdict if no rule matches.
    pub fn by_default(&self, only_reads: impl FnOnce() -> bool) -> Verdict {
        let (decision, why) = match self.policy.default {
            Fallback::Deny => (
                Decision::Deny,
                "no rule speaks about it, and the default is deny",
            ),
            Fallback::Claude => (
                Decision::Silent,
                "no rule speaks about it, and the default is claude",
            ),
            Fallback::Ask if only_reads() => (
                Decision::Silent,
                "no rule speaks about it, and it only reads inside the slot's directory",
            ),
            Fallback::Ask => (Decision::Ask, "no rule speaks about it"),
        };
        Verdict {
            decision,
            rule: None,
            why: why.to_owned(),
        }
    }

    /// The verdict, or *ask* with this reason if the verdict was less strict. A harmful, protected or unknown call is never left
    /// to Claude Code's own rules either.
    pub fn not_allowed(&self, verdict: Verdict, why: String) -> Verdict {
        match verdict.decision {
            Decision::Allow | Decision::Silent => Verdict {
                decision: Decision::Ask,
                rule: verdict.rule,
                why,
            },
            Decision::Ask | Decision::Deny => verdict,
        }
    }

    fn path(&self, access: Access, path: &str) -> Verdict {
        let place = self.ground.place(path, self.ask.place());
        let covers = |rule: &Rule| match tools::searches(&self.ask.tool) {
            true => rule.covers_tree(access, &place, &self.ground),
            false => rule.covers_place(access, &place, &self.ground),
        };
        let verdict = self.by_rules(covers, || {
            access == Access::Read && self.ground.is_inside(&place)
        });
        let verdict = match access {
            Access::Read => self.unless_secret(self.with_glob(verdict, &place), &place, path),
            Access::Write => verdict,
        };
        self.unless_unsafe(verdict, access, &place, path)
    }

    /// The verdict, or *ask* if the call reads a well-known secret that no rule names.
    fn unless_secret(&self, verdict: Verdict, place: &Place, path: &str) -> Verdict {
        let is_secret = |path| secrets::is_one(path, &self.ground);
        let may_hold = |path| secrets::may_lie_below(path, &self.ground);
        let is_search = self.ask.tool == "Grep";
        let is_met = |path| is_secret(path) || is_search && may_hold(path);
        let names_it = |rule: &Rule| {
            let text = rule.at.text.split_once('(').map_or("", |(_, text)| text);
            rule.decision == Decision::Allow
                && secrets::are_named(text.trim_end_matches(')'))
                && rule.covers_tree(Access::Read, place, &self.ground)
        };
        match place.ways().any(is_met) && !self.policy.rules().any(names_it) {
            true => self.not_allowed(verdict, format!("`{path}` is or holds a file with secrets")),
            false => verdict,
        }
    }

    /// The verdict on a search in the files that match a glob: they count as read.
    fn with_glob(&self, verdict: Verdict, place: &Place) -> Verdict {
        let Some(globs) = tools::searched_globs(self.ask) else {
            return verdict;
        };
        let means = |rule: &&Rule| match rule.meaning() {
            Meaning::Path(Access::Read, pattern) if rule.decision > Decision::Allow => {
                let absolute = |glob: &String| format!("{}/{glob}", place.written.display());
                let meets = |glob: &String| pattern.is_aimed_at(&absolute(glob), &self.ground);
                globs.iter().any(meets)
            }
            _ => false,
        };
        match self
            .policy
            .rules()
            .filter(means)
            .max_by_key(|rule| rule.decision)
        {
            Some(rule) if rule.decision > verdict.decision => by_rule(rule),
            _ => verdict,
        }
    }

    /// The verdict on a file that the shell itself opens: the same as for a tool that reads or edits files.
    pub fn opened(&self, access: Access, path: &str, cwd: &Path) -> Verdict {
        let tool = match access {
            Access::Read => "Read",
            Access::Write => "Edit",
        };
        let place = self.ground.place(path, cwd);
        let covered = |rule: &&Rule| {
            rule.covers_tool(tool) || rule.covers_place(access, &place, &self.ground)
        };
        let rules = self.nearest_only(self.policy.rules().filter(covered).collect());
        let only_reads = || access == Access::Read && self.ground.is_inside(&place);
        let verdict = match strictest(&rules) {
            Some(rule) => by_rule(rule),
            None if self.policy.default == Fallback::Claude && !only_reads() => {
                Verdict::without_rule(Decision::Ask, "no rule speaks about this file")
            }
            None => self.by_default(only_reads),
        };
        let is_secret = |path| secrets::is_one(path, &self.ground);
        let verdict = match place.ways().any(is_secret) {
            true => self.not_allowed(verdict, format!("`{path}` is a file with secrets")),
            false => verdict,
        };
        self.unless_unsafe(verdict, access, &place, path)
    }

    /// The verdict, or *ask* if the place is protected, a device, or uncertain.
    fn unless_unsafe(
        &self,
        verdict: Verdict,
        access: Access,
        place: &Place,
        path: &str,
    ) -> Verdict {
        if access == Access::Write
            && let Some(why) = protected::forbids(place, &self.ground)
        {
            return self.not_allowed(verdict, why);
        }
        if let Some(why) = place.doubt {
            return self.not_allowed(verdict, why.to_owned());
        }
        if place
            .ways()
            .any(|path| harm::is_device(&self.ask.tool, path))
        {
            return self.not_allowed(verdict, "it is a device".to_owned());
        }
        match path.contains(|c: char| c.is_control()) {
            true => self.not_allowed(verdict, "the path has control characters".to_owned()),
            false => verdict,
        }
    }

    fn url(&self, url: &str) -> Verdict {
        let Some(host) = host_of(url) else {
            let verdict = self.by_tool();
            return self.not_allowed(verdict, "the URL does not plainly name one host".to_owned());
        };
        self.by_rules(|rule| rule.covers_host(&host), || false)
    }
}

/// The strictest of some rules; the first of several equally strict ones.
pub fn strictest<'a>(rules: &[&'a Rule]) -> Option<&'a Rule> {
    let most = rules.iter().map(|rule| rule.decision).max()?;
    rules.iter().find(|rule| rule.decision == most).copied()
}

pub fn by_rule(rule: &Rule) -> Verdict {
    let verb = match rule.decision {
        Decision::Allow => "allowed",
        Decision::Silent | Decision::Ask => "a person is asked",
        Decision::Deny => "denied",
    };
    Verdict {
        decision: rule.decision,
        rule: Some(rule.at.clone()),
        why: format!("{verb} by {}", rule.at.text),
    }
}
