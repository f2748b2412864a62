//! The changes of a reload. Pure.

use super::Config;
use crate::core::settings::SlotConfig;
use serde::Serialize;
use serde_json::Value;

/// One difference between two configurations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfigChange {
    /// Keys of `[daemon]`; they take effect when the daemon is started again.
    Daemon {
        keys: Vec<String>,
    },
    /// Keys of [notify]; they take effect at once.
    Notify {
        keys: Vec<String>,
    },
    /// Keys of `[sessions]`; they take effect for new sessions.
    Sessions {
        keys: Vec<String>,
    },
    Added {
        slot: String,
    },
    Removed {
        slot: String,
    },
    /// Keys of a slot that is in both; they take effect at its next start.
    Changed {
        slot: String,
        keys: Vec<String>,
    },
}

/// The differences: `[daemon]` first, then the slots in the order of the new file, the removed ones last.
pub fn diff(old: &Config, new: &Config) -> Vec<ConfigChange> {
    let daemon = keys_that_differ(&old.daemon, &new.daemon);
    let daemon = (!daemon.is_empty()).then_some(ConfigChange::Daemon { keys: daemon });
    let mut notify = keys_that_differ(&old.notify, &new.notify);
    if notify.is_empty() && old.notify != new.notify {
        // Its serialised form is masked.
        notify.push("an address or a token".to_owned());
    }
    let notify = (!notify.is_empty()).then_some(ConfigChange::Notify { keys: notify });
    let sessions = keys_that_differ(&old.sessions, &new.sessions);
    let sessions = (!sessions.is_empty()).then_some(ConfigChange::Sessions { keys: sessions });
    let kept_or_added = new.slots.iter().filter_map(|slot| change(old, slot));
    let removed = old
        .slots
        .iter()
        .filter(|slot| find(new, &slot.name).is_none())
        .map(|slot| ConfigChange::Removed {
            slot: slot.name.clone(),
        });
    daemon
        .into_iter()
        .chain(notify)
        .chain(sessions)
        .chain(kept_or_added)
        .chain(removed)
        .collect()
}

fn change(old: &Config, new: &SlotConfig) -> Option<ConfigChange> {
    let slot = new.name.clone();
    let Some(old) = find(old, &slot) else {
        return Some(ConfigChange::Added { slot });
    };
    let keys = keys_that_differ(old, new);
    (!keys.is_empty()).then_some(ConfigChange::Changed { slot, keys })
}

fn find<'a>(config: &'a Config, name: &str) -> Option<&'a SlotConfig> {
    config.slots.iter().find(|slot| slot.name == name)
}

/// The keys whose values differ. Their serialised form is compared, so that no key can be forgotten here.
pub fn keys_that_differ<T: Serialize>(old: &T, new: &T) -> Vec<String> {
    let (Ok(Value::Object(old)), Ok(Value::Object(new))) =
        (serde_json::to_value(old), serde_json::to_value(new))
    else {
        return Vec::new();
    };
    new.into_iter()
        .filter(|(key, value)| old.get(key) != Some(value))
        .map(|(key, _)| key)
        .collect()
}
