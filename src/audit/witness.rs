//! The head of the chain, told to the system log: who rewrites the whole file would have to rewrite that too.

use super::Head;
use chrono::Local;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use tokio::time::{Duration, Instant};

/// The log is told after this many entries, or [`SystemLog::within`] a time since the first untold one: at most
/// so much can be rewritten unseen.
const EVERY: u64 = 100;

/// `authpriv.notice`: kept by most systems where only root reads and writes it.
const PRIORITY: u8 = 10 * 8 + 5;

/// Where the system log listens, on machines that have one, and how soon it is told.
#[derive(Debug, Clone)]
pub struct SystemLog {
    pub socket: PathBuf,
    pub within: Duration,
}

impl Default for SystemLog {
    fn default() -> SystemLog {
        SystemLog {
            socket: "/dev/log".into(),
            within: Duration::from_secs(60),
        }
    }
}

#[derive(Debug)]
pub struct AuditWitness {
    log: SystemLog,
    audit: PathBuf,
    told: u64,
    /// When the head is told at the latest; `None` where all is told.
    pub due: Option<Instant>,
}

impl AuditWitness {
    /// Tells at once where the chain stands.
    pub fn new(log: SystemLog, audit: PathBuf, head: &Head) -> AuditWitness {
        let mut witness = AuditWitness {
            log,
            audit,
            told: 0,
            due: None,
        };
        if head.seq > 0 {
            witness.tell(head);
        }
        witness
    }

    pub fn grown(&mut self, head: &Head) {
        if head.seq - self.told >= EVERY {
            self.tell(head);
        } else if self.due.is_none() {
            self.due = Some(Instant::now() + self.log.within);
        }
    }

    /// A machine without a system log has no witness, and one that is drowning must not hold us up.
    pub fn tell(&mut self, head: &Head) {
        if head.seq > self.told {
            let _ = self.send(head);
        }
        self.told = head.seq;
        self.due = None;
    }

    fn send(&self, head: &Head) -> io::Result<usize> {
        let time = Local::now().format("%b %e %H:%M:%S");
        let (pid, audit) = (std::process::id(), self.audit.display());
        let text = format!("<{PRIORITY}>{time} missiond[{pid}]: audit {audit} head {head}");
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.send_to(text.as_bytes(), &self.log.socket)
    }
}
