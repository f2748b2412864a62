//! Messages to people by HTTP. Each channel has one thread and one bounded queue: a slow or dead server holds up nothing but
//! its own messages. Nothing here can be called by what runs in a slot: addresses come from slots.toml alone.

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

/// A message is tried this often: a server that restarts is back by then.
const TRIES: u32 = 4;
/// The pause before the second try; each further one is four times as long.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// Why a message did not arrive, in words that name no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushError {
    pub text: String,
    /// Another try may succeed.
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

/// What fails of the channels at present, in words.
pub type Failing = BTreeMap<&'static str, String>;

/// What became of a test message.
pub type Delivered = Result<Duration, PushError>;

/// The way out: a queue for each channel, whose thread is started with its first message.
#[derive(Debug, Default)]
pub struct Pusher {
    queues: BTreeMap<Channel, Arc<PushQueue>>,
    failing: watch::Sender<Failing>,
}

impl Pusher {
    /// Where failures are noted, for whoever shows them.
    pub fn failing(&self) -> watch::Sender<Failing> {
        self.failing.clone()
    }

    /// Sends it as soon as those before it are sent; tries again if that may help. It never waits.
    pub fn send(&mut self, post: Post) {
        let (channel, slot) = (post.channel, post.about.clone());
        if let Err(error) = self.queue(QueuedPush::new(post, TRIES)) {
            tracing::warn!(about = %slot, "[notify] {}: not sent: {error}", channel.word());
        }
    }

    /// Sends it once; the receiver learns what became of it.
    pub fn test(&mut self, post: Post) -> oneshot::Receiver<Delivered> {
        let (told, result) = oneshot::channel();
        let pending = QueuedPush::new(post, 1).telling(told);
        if let Err(error) = self.queue(pending) {
            // The sender was dropped with the message, which says less.
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
    /// The threads end when their message under way is sent or has failed.
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

/// The thread of a channel.
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

/// `None` if it was withdrawn before it could be sent, or the daemon ends.
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
