//! Who waits for an answer of a slot: clients of the machine by their tokens, and readers of the conversation.

use super::handle::Answer;
use crate::core::machine::{Reply, Token};
use crate::core::model::{HistoryAnswer, RpcError};
use crate::events::Bus;
use std::collections::HashMap;

/// Clients that may wait for the end of a turn; further ones get the conversation as it is.
const MAX_READERS: usize = 64;

/// Somebody who asked for the conversation, and for how much of it.
pub(super) type Reader = (Option<usize>, Answer<HistoryAnswer>);

#[derive(Debug, Default)]
pub(super) struct Clients {
    bus: Bus,
    replies: HashMap<Token, Answer<Reply>>,
    /// They asked for the conversation when its last answer was not in it yet.
    readers: Vec<Reader>,
}

impl Clients {
    pub fn new(bus: Bus) -> Clients {
        Clients {
            bus,
            ..Clients::default()
        }
    }

    pub fn wait(&mut self, token: Token, reply: Answer<Reply>) {
        self.replies.insert(token, reply);
    }

    pub fn waits(&self, token: Token) -> bool {
        self.replies.contains_key(&token)
    }

    /// Somebody no longer waits.
    pub fn forget(&mut self, token: Token) {
        self.replies.remove(&token);
    }

    /// What has been told until now is in the logs when the answer is given, unless the disk does not answer.
    pub fn reply(&mut self, token: Token, reply: Result<Reply, RpcError>) {
        let Some(waiting) = self.replies.remove(&token) else {
            return;
        };
        // A client that went away needs no answer.
        if self.bus.is_settled() {
            let _ = waiting.send(reply);
            return;
        }
        let bus = self.bus.clone();
        tokio::spawn(async move {
            bus.settled().await;
            let _ = waiting.send(reply);
        });
    }

    /// Has a reader wait for the end of the turn. Returns it if too many wait already.
    pub fn hold(&mut self, reader: Reader) -> Option<Reader> {
        self.readers.retain(|(_, reply)| !reply.is_closed());
        if self.readers.len() >= MAX_READERS {
            return Some(reader);
        }
        self.readers.push(reader);
        None
    }

    /// The turn has ended: everybody who waited for that.
    pub fn take_readers(&mut self) -> Vec<Reader> {
        std::mem::take(&mut self.readers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[test]
    fn an_answer_is_given_once_and_to_nobody_who_has_left() {
        let mut clients = Clients::default();
        let (reply, mut answer) = oneshot::channel();
        clients.wait(1, reply);
        assert!(clients.waits(1) && !clients.waits(2));
        clients.reply(2, Ok(Reply::Done));
        clients.reply(1, Ok(Reply::Done));
        assert!(matches!(answer.try_recv(), Ok(Ok(Reply::Done))));
        assert!(!clients.waits(1));
    }

    #[test]
    fn readers_are_bounded_and_those_who_left_take_no_room() {
        let mut clients = Clients::default();
        let mut here = Vec::new();
        for _ in 0..MAX_READERS {
            let (reply, answer) = oneshot::channel();
            assert!(clients.hold((None, reply)).is_none());
            here.push(answer);
        }
        let (reply, _answer) = oneshot::channel();
        let refused = clients.hold((Some(1), reply));
        let (last, reply) = refused.expect("there is no room");
        assert_eq!(last, Some(1));
        here.pop();
        assert!(clients.hold((last, reply)).is_none());
        assert_eq!(clients.take_readers().len(), MAX_READERS);
        assert!(clients.take_readers().is_empty());
    }
}
