//! What a slot says for the record: events go to everybody who listens and to its journal, entries to the audit.

use super::context::SlotContext;
use super::journal::{Journal, SlotPaths, cap_of};
use crate::audit::{Audit, Record};
use crate::core::model::{EventKind, Fault, RpcError};
use crate::core::settings::{SlotConfig, Supervision};
use crate::events::Bus;
use crate::os::remedy;
use std::io;

#[derive(Debug)]
pub(super) struct SlotLog {
    slot: String,
    paths: SlotPaths,
    bus: Bus,
    journal: Journal,
    audit: Audit,
    /// The audit could not be written the last time, which was told.
    audit_fails: bool,
}

impl SlotLog {
    pub fn new(context: &SlotContext, config: &SlotConfig) -> SlotLog {
        let paths = SlotPaths::new(&context.logs, &config.name);
        SlotLog {
            slot: config.name.clone(),
            bus: context.bus.clone(),
            journal: Journal::new(&paths, cap_of(&config.supervision)),
            paths,
            audit: context.audit.clone(),
            audit_fails: false,
        }
    }

    pub fn paths(&self) -> &SlotPaths {
        &self.paths
    }

    /// How much of it is kept from now on.
    pub fn keep(&mut self, supervision: &Supervision) {
        self.journal.set_cap(cap_of(supervision));
    }

    /// Whether no end was told of the last program that was told of.
    pub fn tells_of_a_program(&self) -> bool {
        self.journal.tells_of_a_program()
    }

    pub fn tell(&mut self, what: EventKind) {
        if let Some(id) = self.journal.gone_before(&what) {
            self.tell(EventKind::DialogGone { id });
        }
        self.journal.follow(&what);
        let files = self.journal.files();
        self.bus.publish_to(Some(&self.slot), what, Some(files));
    }

    fn warn(&mut self, text: &str) {
        self.tell(EventKind::Warning {
            text: text.to_owned(),
        });
    }

    /// Writes down what is done only if it is written down.
    pub async fn audited(&mut self, record: Record) -> Result<(), RpcError> {
        let written = self.audit.write(record).await;
        self.tell_audit(&written);
        written.map(drop).map_err(|error| {
            let text = format!("the audit can't be written ({error}), so nothing was pressed");
            let logs = self.paths.log.parent().unwrap_or(&self.paths.log);
            RpcError::new(Fault::Refused, text).next(format!(
                "{}; what works: missiond confirm {slot} no, missiond interrupt {slot}, missiond stop {slot}",
                remedy::of(&error, logs),
                slot = self.slot,
            ))
        })
    }

    /// Writes down what is done in any case.
    pub async fn noted(&mut self, record: Record) {
        let written = self.audit.note(record).await;
        self.tell_audit(&written);
    }

    /// The same, without waiting for it. If it can't be written, that is counted in the hole.
    pub fn note_soon(&self, record: Record) {
        let audit = self.audit.clone();
        tokio::spawn(async move { drop(audit.note(record).await) });
    }

    fn tell_audit(&mut self, written: &io::Result<u64>) {
        let failed_before = std::mem::replace(&mut self.audit_fails, written.is_err());
        match written {
            Err(error) if !failed_before => {
                self.warn(&format!("the audit can't be written: {error}"));
            }
            Ok(_) if failed_before => self.warn("the audit is written again"),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn log_in(directory: &Path) -> SlotLog {
        let paths = SlotPaths::new(directory, "coder");
        let supervision = Supervision::default();
        SlotLog {
            slot: "coder".to_owned(),
            bus: Bus::open(&directory.join("events.jsonl")).expect("a log of its own"),
            journal: Journal::new(&paths, cap_of(&supervision)),
            paths,
            audit: Audit::open(&directory.join("audit.jsonl"), directory).expect("an audit"),
            audit_fails: false,
        }
    }

    #[tokio::test]
    async fn what_is_told_is_in_the_log_and_trouble_with_the_audit_is_told_once() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = log_in(directory.path());
        let refused = || Err(io::Error::other("full"));
        for written in [refused(), refused(), Ok(1), Ok(2)] {
            log.tell_audit(&written);
        }
        log.bus.settled().await;
        let text = std::fs::read_to_string(&log.paths().log).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].ends_with("the audit can't be written: full"));
        assert!(lines[1].ends_with("the audit is written again"));
    }

    #[tokio::test]
    async fn what_was_audited_is_in_the_audit() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = log_in(directory.path());
        let record = Record::key("coder", "Enter", "a test");
        assert!(log.audited(record).await.is_ok());
        let audit = std::fs::read_to_string(directory.path().join("audit.jsonl")).unwrap();
        assert!(audit.contains("\"Enter\""), "{audit}");
    }
}
