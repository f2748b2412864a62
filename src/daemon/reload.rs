//! Loading the config and the policies as they are now on the disk.

use super::kept_policies::{self, KeptPolicy, Texts};
use super::rules::{OwnPolicy, Role, Rules};
use super::{Daemon, KeptSlot};
use crate::config::{self, Config, ConfigChange, RolePolicy};
use crate::core::model::{Always, EventKind, Fault, ReloadAnswer, RpcError};
use crate::core::policy::{self, Policy};
use crate::core::settings::SlotConfig;
use crate::core::text::diagnostic::ConfigError;
use crate::os::files;
use crate::slot::SlotCommand;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

impl Daemon {
    /// Loads the files at a person's request, including policies that allow more.
    pub(super) async fn reload(&mut self) -> Result<ReloadAnswer, RpcError> {
        // A person who reloads has seen the status.
        self.lost.send_replace(Vec::new());
        let known = std::mem::replace(&mut self.policies_are_known, true);
        let taken = self.take(MorePermissive::All).await;
        self.policies_are_known = known || taken.is_ok();
        taken.map_err(|error| {
            RpcError::new(Fault::Usage, format!("nothing was changed:\n{error}"))
                .next("correct it, then: missiond reload")
        })
    }

    /// Loads the files after a change on the disk. A stricter part of a policy takes effect at once; a more permissive
    /// part waits for a person.
    pub(super) async fn files_changed(&mut self) {
        if let Err(error) = self.take(MorePermissive::None).await {
            tracing::error!("the config on disk is not taken:\n{error}");
        }
    }

    async fn take(&mut self, permitted: MorePermissive<'_>) -> Result<ReloadAnswer, ConfigError> {
        let read = config::load(&self.config.file)
            .and_then(|config| self.check_sessions(&config).map(|()| config));
        let fault = read.as_ref().err().map(ConfigError::in_short);
        self.fault.send_replace(fault);
        let config = match read {
            Ok(config) => config,
            Err(error) => {
                self.context.bus.publish(
                    None,
                    EventKind::Config {
                        ok: false,
                        text: error.to_string(),
                    },
                );
                return Err(error);
            }
        };
        let rules = Rules::new(&config, &self.context).beside(self.rules.own_policy());
        let mut changes = self.take_rules(rules, permitted);
        let slots = config::diff(&self.config, &config);
        let before = std::mem::replace(&mut self.config, config);
        self.notify.send_replace(self.config.notify.clone());
        for change in &slots {
            changes.push(self.apply(change, &before).await);
        }
        self.keep_policies();
        self.hand_out().await;
        self.publish();
        self.tell_changes(&changes);
        Ok(ReloadAnswer { changes })
    }

    fn tell_changes(&self, changes: &[String]) {
        for text in changes {
            tracing::info!("{text}");
            let text = text.clone();
            let change = EventKind::Config { ok: true, text };
            self.context.bus.publish(None, change);
        }
    }

    /// Goes on with the policies of the previous daemon, if it was killed and its programs still run. A file that has
    /// changed since then is handled like a change in a running daemon.
    pub(super) fn take_over_policies(&mut self) {
        match kept_policies::load(&self.context.state) {
            Ok(texts) => {
                let (policies, not_read) = self.parse_kept(&texts);
                let own = self.rules.own_policy();
                let kept = Rules::of(&policies, &self.config, &self.context).beside(own);
                let on_disk = std::mem::replace(&mut self.rules, kept);
                let changes = self.take_rules(on_disk, MorePermissive::None);
                self.tell_changes(&changes);
                not_read.into_iter().for_each(|why| self.not_known(&why));
            }
            Err(error) => {
                let file = kept_policies::file(&self.context.state);
                self.not_known(&format!("{} can't be read: {error}", file.display()));
            }
        }
    }

    /// Parses these texts. The second value says why some can't be parsed.
    fn parse_kept(&self, texts: &Texts) -> (BTreeMap<String, RolePolicy>, Vec<String>) {
        let (mut policies, mut not_read) = (BTreeMap::new(), Vec::new());
        let base = self.config.file.parent().unwrap_or(Path::new("/"));
        for (role, KeptPolicy { file, text }) in texts {
            match Policy::parse(text, file, base) {
                Ok(policy) => {
                    let (text, policy) = (text.as_str().into(), Arc::new(policy));
                    policies.insert(role.clone(), RolePolicy { text, policy });
                }
                Err(faults) => {
                    let why = ConfigError::from(faults).in_short();
                    not_read.push(format!("the policy {role} that was in force: {why}"));
                }
            }
        }
        (policies, not_read)
    }

    /// Notes that the policies on the disk were loaded without a comparison: a person has to look at them.
    fn not_known(&mut self, why: &str) {
        self.policies_are_known = false;
        let text = format!(
            "the policies that were in force before are unknown ({why}): those on the disk are in force; \
             look through them, then: missiond reload"
        );
        tracing::warn!("{text}");
        self.lost.send_modify(|lost| lost.push(text.clone()));
        self.context.bus.publish(None, EventKind::Warning { text });
    }

    /// Writes the policies in force to the state directory, for a daemon that takes over from this one. If that fails,
    /// the last written ones stay: a person has accepted them too. Policies that no person has accepted are not
    /// written, so that the next daemon warns again.
    pub(super) fn keep_policies(&self) {
        if !self.policies_are_known {
            return;
        }
        let roles = self.rules.roles();
        let kept = |role: &Role| KeptPolicy {
            file: role.policy.file.clone(),
            text: role.text.to_string(),
        };
        let texts = roles.map(|(name, role)| (name.clone(), kept(role)));
        if let Err(error) = kept_policies::save(&self.context.state, texts.collect()) {
            let file = kept_policies::file(&self.context.state);
            let text = format!(
                "the policies in force can't be saved in {}: {error}; if this daemon is killed, the \
                 next one does not know them",
                file.display()
            );
            tracing::warn!("{text}");
            self.context.bus.publish(None, EventKind::Warning { text });
        }
    }

    fn take_rules(&mut self, new: Rules, permitted: MorePermissive<'_>) -> Vec<String> {
        let mut changes = Vec::new();
        let mut taken = new.clone();
        for (role, now) in new.roles() {
            let Some(old) = self.rules.role(role) else {
                continue;
            };
            if old.text == now.text {
                continue;
            }
            if permitted.includes(role) || !Policy::widens(&old.policy, &now.policy) {
                changes.push(format!("policy {role}: changed"));
            } else {
                let waiting = Policy::gains(&old.policy, &now.policy).join(", ");
                let waits = Some(now.policy.clone());
                let old = Role {
                    waits,
                    ..old.clone()
                };
                taken.put(role, old);
                changes.push(format!(
                    "policy {role}: stricter rules are in force; the changes that may allow more wait for missiond reload: {waiting}"
                ));
            }
        }
        self.rules = taken.and_those_of(&self.rules);
        changes
    }

    /// Carries out a change of the config, and returns a description.
    async fn apply(&mut self, change: &ConfigChange, before: &Config) -> String {
        match change {
            ConfigChange::Added { slot: name } => {
                self.stay(name);
                let slot = slot_of(&self.config, name).cloned();
                if let (Some(slot), false) = (slot, self.kept.contains_key(name)) {
                    self.add(slot);
                }
            }
            ConfigChange::Removed { slot: name } => {
                if let Some(slot) = slot_of(before, name) {
                    return self.leave(slot).await;
                }
            }
            ConfigChange::Changed { .. }
            | ConfigChange::Daemon { .. }
            | ConfigChange::Notify { .. }
            | ConfigChange::Sessions { .. } => {}
        }
        in_words(change)
    }

    /// Gives every slot its settings, for the next start, and its rules, for the next ask. A program that runs in
    /// another role keeps the rules of that role until it is restarted.
    pub(super) async fn hand_out(&self) {
        for slot in &self.config.slots {
            let Some(kept) = self.kept.get(&slot.name) else {
                continue;
            };
            let slot = self.settled(slot);
            let rules = self.rules.of_slot(&slot);
            let role = kept.handle.status().role;
            let running = (role != slot.role).then(|| {
                let of_role = self.rules.of_role(&slot, &role, &self.config.file);
                (role, of_role)
            });
            let reconfigure = SlotCommand::Reconfigure {
                config: Arc::new(slot),
                rules,
                running,
            };
            // A slot that is gone needs no settings.
            let _ = kept.handle.send(reconfigure).await;
        }
    }

    pub(super) fn has_left(&mut self, name: &str) {
        if self
            .kept
            .get(name)
            .is_some_and(|KeptSlot { leaving, .. }| leaving.is_some())
        {
            let gone = self.kept.remove(name);
            if let Some(gone) = gone {
                self.clear_worktree(&gone.handle.status().cwd);
            }
            self.publish();
            let text = format!("slot {name}: stopped and removed");
            self.context
                .bus
                .publish(None, EventKind::Config { ok: true, text });
        }
    }

    /// Removes the worktree of a slot that is gone, unless it has changes that are not committed.
    fn clear_worktree(&self, cwd: &Path) {
        let Some(root) = crate::os::worktree::root_of(&self.context.worktrees, cwd) else {
            return;
        };
        tokio::spawn(async move {
            if let Err(reason) = crate::os::worktree::remove_if_clean(&root).await {
                tracing::warn!("{} is kept: {reason}", root.display());
            }
        });
    }

    /// Adds the narrow rule for the call that a person has just confirmed; the rule takes effect at once. It was judged
    /// with the policy in force, so it is added only if the file still has that text.
    pub(super) async fn allow_always(
        &mut self,
        role: &str,
        rule: String,
    ) -> Result<Always, RpcError> {
        let failed = |text: String| {
            RpcError::new(
                Fault::Failed,
                format!("confirmed, but no rule was added: {text}"),
            )
        };
        if self.rules.own_policy().is_some() {
            return Ok(Always::from(Err(OwnPolicy::no_rule_for_always())));
        }
        let file = self.config.daemon.policy_file(role);
        let text = files::read_text(&file).map_err(|error| failed(error.to_string()))?;
        let in_force = self.rules.role(role);
        let Some(in_force) = in_force.filter(|role| role.waits.is_none() && *role.text == *text)
        else {
            let file = file.display();
            let why = format!("{file} has changed and is not in force; missiond reload takes it");
            return Ok(Always::from(Err(why)));
        };
        let with_rule = match policy::add_rule_for_always(&in_force.policy, &text, &rule) {
            Ok(with_rule) => with_rule,
            Err(why) => return Ok(Always::from(Err(why))),
        };
        files::replace(&file, &with_rule).map_err(|error| failed(error.to_string()))?;
        if let Err(error) = self.take(MorePermissive::Role(role)).await {
            let back = files::replace(&file, &text);
            let stays = |fault| format!("\n{} keeps the rule: {fault}", file.display());
            let stays = back.err().map(stays).unwrap_or_default();
            return Err(failed(format!("{error}{stays}")));
        }
        Ok(Always::from(Ok(rule)))
    }
}

/// The policies that are accepted although they are more permissive than those in force.
#[derive(Debug, Clone, Copy)]
enum MorePermissive<'a> {
    None,
    Role(&'a str),
    All,
}

impl MorePermissive<'_> {
    fn includes(self, role: &str) -> bool {
        match self {
            MorePermissive::None => false,
            MorePermissive::Role(name) => name == role,
            MorePermissive::All => true,
        }
    }
}

fn slot_of<'a>(config: &'a Config, name: &str) -> Option<&'a SlotConfig> {
    config.slots.iter().find(|slot| slot.name == name)
}

fn in_words(change: &ConfigChange) -> String {
    match change {
        // Policies are read from the new directory at once.
        ConfigChange::Daemon { keys } if *keys == ["policies"] => {
            "[daemon]: policies changed".to_owned()
        }
        ConfigChange::Daemon { keys } => format!(
            "[daemon]: {} changed, for the next start of the daemon",
            keys.join(", ")
        ),
        ConfigChange::Notify { keys } => format!("[notify]: {} changed", keys.join(", ")),
        ConfigChange::Sessions { keys } => {
            format!("[sessions]: {} changed, for new ones", keys.join(", "))
        }
        ConfigChange::Added { slot } => format!("slot {slot}: added"),
        ConfigChange::Removed { slot } => format!("slot {slot}: removed"),
        ConfigChange::Changed { slot, keys } => format!(
            "slot {slot}: {} changed, for its next start",
            keys.join(", ")
        ),
    }
}
