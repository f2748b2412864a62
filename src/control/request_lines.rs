//! The request lines of clients, with a bound on the bytes of unfinished lines.
//!
//! Each client may always have [`OWN`] bytes of an unfinished line. More comes from the budget of its source, so that a
//! slot can neither fill the daemon's memory nor block the long lines of people and of other slots.

use super::allowances::Allowances;
use super::places::ConnectionSource;
use crate::core::model::{Fault, MAX_LINE, RpcError};
use crate::os::outbox::{Loan, OWN};
use std::io;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder, LinesCodec, LinesCodecError};

/// Bytes for people and their programs together.
const PEOPLE: usize = 24 << 20;
/// Bytes for one slot: the longest line fits.
const ONE_SLOT: usize = MAX_LINE;

/// Bytes for all slots together: as many slots as have places can each have their longest line.
const SLOTS: usize = 9 * ONE_SLOT;

/// The budget of each source that has clients.
#[derive(Debug)]
pub(super) struct Inbound(Allowances);

impl Default for Inbound {
    fn default() -> Inbound {
        Inbound(Allowances::new(PEOPLE, SLOTS, ONE_SLOT))
    }
}

impl Inbound {
    /// A decoder that splits the bytes of one more client of this source into lines.
    pub fn lines(&self, source: &ConnectionSource) -> RequestLines {
        RequestLines {
            lines: LinesCodec::new_with_max_length(MAX_LINE),
            loan: self.0.of(source).loan(),
        }
    }
}

/// The decoder of one connection.
#[derive(Debug)]
pub(super) struct RequestLines {
    lines: LinesCodec,
    loan: Loan,
}

impl RequestLines {
    /// The plain codec, for a connection that no longer carries requests.
    pub fn into_lines(self) -> LinesCodec {
        self.lines
    }
}

impl Decoder for RequestLines {
    type Item = String;
    type Error = LinesCodecError;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<String>, LinesCodecError> {
        let line = self.lines.decode(bytes)?;
        let unfinished = if line.is_some() { 0 } else { bytes.len() };
        match self.loan.resize(unfinished.saturating_sub(OWN)) {
            true => Ok(line),
            false => Err(io::Error::from(io::ErrorKind::QuotaExceeded).into()),
        }
    }

    fn decode_eof(&mut self, bytes: &mut BytesMut) -> Result<Option<String>, LinesCodecError> {
        self.lines.decode_eof(bytes)
    }
}

/// The refusal of a line when the budget is used up.
pub(super) fn no_allowance() -> RpcError {
    let text =
        "turned away: the daemon is full (unfinished requests of this client and others like it)";
    RpcError::new(Fault::Full, text).next("try again when they have ended")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client and the bytes that it has sent of a line.
    struct Sender(RequestLines, BytesMut);

    impl Sender {
        fn new(inbound: &Inbound, source: ConnectionSource) -> Sender {
            Sender(inbound.lines(&source), BytesMut::new())
        }

        /// Tells whether the line may have this many bytes.
        fn grows_to(&mut self, bytes: usize) -> bool {
            self.1.resize(bytes, b'x');
            self.0.decode(&mut self.1).is_ok()
        }
    }

    #[test]
    fn unfinished_lines_have_a_bound_by_their_source() {
        let inbound = Inbound::default();
        let slot = |name: &str| Sender::new(&inbound, ConnectionSource::Slot(name.to_owned()));
        let (mut one, mut two) = (slot("a"), slot("a"));
        assert!(one.grows_to(MAX_LINE));
        assert!(two.grows_to(OWN), "each has some bytes of its own");
        assert!(!two.grows_to(OWN * 3));
        // Other slots have their own budget, and a finished line gives its bytes back.
        assert!(slot("b").grows_to(MAX_LINE));
        assert!(Sender::new(&inbound, ConnectionSource::People).grows_to(MAX_LINE));
        assert!(!Sender::new(&inbound, ConnectionSource::Untold).grows_to(OWN + 1));
        one.1.extend_from_slice(b"\n");
        let ended = one.0.decode(&mut one.1).unwrap();
        assert_eq!(ended.map(|line| line.len()), Some(MAX_LINE));
        assert!(two.grows_to(MAX_LINE));
        assert!(!one.grows_to(OWN * 3));
        drop(two);
        assert!(one.grows_to(OWN * 3), "so does a client that leaves");
    }
}
