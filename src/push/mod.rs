//! Messages to people by HTTP. Each channel has one thread and one bounded queue: a slow or dead server delays only its
//! own messages. Programs in a slot can't use this: addresses come from slots.toml only.

mod http;
mod queue;
mod replies;

pub use replies::Replies;

use crate::core::alerts::{Channel, Post};
use queue::{NextPush, PushQueue, QueuedPush};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// The maximum of attempts for a message: a server that restarts is back by then.
const TRIES: u32 = 4;
/// The pause before the second attempt; each further pause is four times as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// Why a message did not arrive. The text names no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushError {
    pub text: String,
    /// Whether another attempt may succeed.
    pub may_pass: bool,
}

impl PushError {
    fn lasting(text: impl Into<String>) -> PushError {
        let text = text.into();
        PushError {
            text,
            may_pass: false,
        }
    }

    #[cfg(feature = "push")]
    fn passing(text: impl Into<String>) -> PushError {
        PushError {
            may_pass: true,
            ..PushError::lasting(text)
        }
    }
}

/// The channels that fail now, with the reason as text.
pub type Failing = BTreeMap<&'static str, String>;

/// The result of a test message.
pub type Delivered = Result<Duration, PushError>;

/// A queue for each channel. The thread of a channel is started with its first message.
#[derive(Debug, Default)]
pub struct Pusher {
    queues: BTreeMap<Channel, Arc<PushQueue>>,
    failing: watch::Sender<Failing>,
}

impl Pusher {
    /// The failures of the channels, for the code that shows them.
    pub fn failing(&self) -> watch::Sender<Failing> {
        self.failing.clone()
    }

    /// Queues a message; the thread tries again if that may help. This never blocks.
    pub fn send(&mut self, post: Post) {
        let (channel, slot) = (post.channel, post.about.clone());
        if let Err(error) = self.queue(QueuedPush::new(post, TRIES)) {
            tracing::warn!(about = %slot, "[notify] {}: not sent: {error}", channel.word());
        }
    }

    /// Sends a message once; the receiver gets the result.
    pub fn test(&mut self, post: Post) -> oneshot::Receiver<Delivered> {
        let (told, result) = oneshot::channel();
        let pending = QueuedPush::new(post, 1).telling(told);
        if let Err(error) = self.queue(pending) {
            // The sender was dropped with the message, so the first receiver would get no reason.
            let (told, result) = oneshot::channel();
            let _ = told.send(Err(PushError::lasting(error.to_string())));
            return result;
        }
        result
    }

    fn queue(&mut self, pending: QueuedPush) -> io::Result<()> {
        let channel = pending.channel();
        let queue = match self.queues.get(&channel) {
            Some(queue) => queue,
            None => {
                let queue = start(channel, self.failing.clone())?;
                self.queues.entry(channel).or_insert(queue)
            }
        };
        queue.push(pending)
    }
}

impl Drop for Pusher {
    /// Closes the queues. The threads end when their present message is sent or has failed.
    fn drop(&mut self) {
        self.queues.values().for_each(|queue| queue.close());
    }
}

fn start(channel: Channel, failing: watch::Sender<Failing>) -> io::Result<Arc<PushQueue>> {
    let queue = Arc::new(PushQueue::default());
    let name = format!("notify-{}", channel.word());
    let own = queue.clone();
    std::thread::Builder::new()
        .name(name)
        .spawn(move || deliver_all(&own, &failing))?;
    Ok(queue)
}

/// Sends the messages of a channel, in its thread.
fn deliver_all(queue: &PushQueue, failing: &watch::Sender<Failing>) {
    let agent = http::HttpClient::new();
    while let NextPush::Message(pending) = queue.next() {
        let channel = pending.channel();
        let Some(result) = deliver(&agent, queue, &pending) else {
            continue;
        };
        let error = result.as_ref().err().map(|error| error.text.clone());
        if let Some(error) = &error {
            tracing::warn!(about = %pending.about(), "[notify] {}: {error}", channel.word());
        }
        let channel = channel.word();
        let text = error
            .map(|error| format!("a message of [notify] by {channel} did not arrive: {error}"));
        failing.send_if_modified(|failing| match text {
            Some(text) => failing.insert(channel, text.clone()) != Some(text),
            None => failing.remove(channel).is_some(),
        });
        pending.tell(result);
    }
}

/// Sends a message. `None` if it was withdrawn before it could be sent, or the daemon ends.
fn deliver(agent: &http::HttpClient, queue: &PushQueue, pending: &QueuedPush) -> Option<Delivered> {
    let mut pause = FIRST_PAUSE;
    for nth in 1.. {
        let began = Instant::now();
        match agent.post(pending.post()) {
            Ok(()) => return Some(Ok(began.elapsed())),
            Err(error) if error.may_pass && nth < pending.tries() => {
                if !queue.pause(pending, pause) {
                    return None;
                }
                pause *= 4;
            }
            Err(error) => return Some(Err(error)),
        }
    }
    None
}
