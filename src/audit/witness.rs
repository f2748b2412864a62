//! Sends the head of the chain to the system log: an attacker who rewrites the whole file would have to rewrite that
//! too.

use super::Head;
use chrono::Local;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use tokio::time::{Duration, Instant};

/// The head is sent after this many entries, or [`SystemLog::within`] a time after the first unsent one: at most that
/// much can be rewritten undetected.
const EVERY: u64 = 100;

/// `authpriv.notice`: most systems keep it where only root can read and write.
const PRIORITY: u8 = 10 * 8 + 5;

/// The socket of the system log, if the machine has one, and the longest delay.
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
    /// When the head is sent at the latest; `None` if it is up to date.
    pub due: Option<Instant>,
}

impl AuditWitness {
    /// A witness that sends the present head at once.
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

    /// Sends the head. A machine without a system log has no witness, and an overloaded one must not block missiond.
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
