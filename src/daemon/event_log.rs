//! The event log at the start of the daemon.

use super::DaemonError;
use crate::config::Config;
use crate::core::settings::Supervision;
use crate::events::Bus;
use crate::slot::journal::{self, cap_of};
use std::path::Path;

/// Opens the event bus, whose positions continue those of earlier daemons, and adds to the slots' own files what a killed
/// daemon has written to the event log alone.
pub(super) fn open(config: &Config, state: &Path) -> Result<Bus, DaemonError> {
    let file = state.join("events.jsonl");
    let bus = Bus::open(&file).map_err(|error| DaemonError::file(&file, &error))?;
    let caps = config
        .slots
        .iter()
        .map(|slot| (slot.name.clone(), cap_of(&slot.supervision)));
    let other = cap_of(&Supervision::default());
    if let Err(error) = journal::catch_up(&config.daemon.logs, &bus, &caps.collect(), other) {
        tracing::warn!(
            "what a killed daemon has left out of the slots' logs is not added: {error}"
        );
    }
    Ok(bus)
}
