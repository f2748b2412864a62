//! What a changed policy may allow that the old one did not. Those changes wait for a person; all others take effect at once.

use super::{Decision, Dialogs, Policy, Rule};

impl Policy {
    /// What `new` may allow that `old` does not, one short text for each. Empty if `new` is certainly not more permissive.
    pub fn gains(old: &Policy, new: &Policy) -> Vec<String> {
        let whole = [
            (new.project != old.project, "another directory".to_owned()),
            (
                new.default < old.default,
                format!("default = \"{}\"", new.default.word()),
            ),
            (
                new.dialogs.stricter(old.dialogs) != new.dialogs,
                dialogs(&old.dialogs, &new.dialogs),
            ),
            (
                !new.protected.covers(&old.protected),
                "fewer protected paths".to_owned(),
            ),
            (!new.grants.are_within(&old.grants), "[mcp]".to_owned()),
        ];
        let whole = whole.into_iter().filter(|(is_gained, _)| *is_gained);
        let whole = whole.map(|(_, what)| what);
        let added = new.rules.iter().filter(|rule| old.lacks(rule));
        let added = added.map(|rule| format!("{} {}", rule.decision.word(), rule.at.text));
        let dropped = old.rules.iter().filter(|rule| new.drops(rule));
        let dropped = dropped.map(|rule| format!("no {} {}", rule.decision.word(), rule.at.text));
        whole.chain(added).chain(dropped).collect()
    }

    /// Whether a rule of a newer policy may allow something that no rule here allows.
    fn lacks(&self, new: &Rule) -> bool {
        match new.decision {
            Decision::Allow => {
                let mut allowing = self
                    .rules
                    .iter()
                    .filter(|rule| rule.decision == Decision::Allow);
                !allowing.any(|known| new.is_within(known))
            }
            _ => self.rules.iter().any(|rule| new.takes_the_place_of(rule)),
        }
    }

    /// Whether a restriction of an older policy is missing or less strict here.
    fn drops(&self, old: &Rule) -> bool {
        let keeps = |kept: &Rule| kept.decision >= old.decision && kept.says_the_same_as(old);
        old.decision > Decision::Allow && !self.rules.iter().any(keeps)
    }
}

fn dialogs(old: &Dialogs, new: &Dialogs) -> String {
    let less = [
        (new.trust < old.trust, "trust"),
        (new.api_key < old.api_key, "api_key"),
        (new.plan < old.plan, "plan"),
        (new.question < old.question, "question"),
    ];
    let less = less.into_iter().filter(|(is_less, _)| *is_less);
    let less: Vec<&str> = less.map(|(_, kind)| kind).collect();
    format!("[dialogs] {}", less.join(", "))
}
