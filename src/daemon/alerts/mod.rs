//! Calls a person, through each channel of `[notify]`, when a slot has waited or been in doubt for too long, gave up,
//! stalled or reached a limit: once for each of these. When that is over, the channels get a message that it is.

mod command;
mod remote;

use super::{RemoteAnswer, Slots};
use crate::core::alerts::{Alert, AlertDesk, Buttons, note_post, posts, test_alert};
use crate::core::model::{ChannelTest, Fault, RpcError};
use crate::core::settings::NotifyConfig;
use crate::events::Bus;
use crate::push::{Delivered, Failing, Pusher};
use crate::slot::SlotContext;
use chrono::Local;
use command::CommandRunner;
use remote::{AnswerNote, Answers, RemoteDesk};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// The interval at which quiet hours are checked again: after a sleep of the machine, the time of day has changed.
const LONGEST_QUIET: Duration = Duration::from_secs(5 * 60);

type TestReply = oneshot::Sender<Vec<ChannelTest>>;

/// A handle to the task that calls people.
#[derive(Debug, Clone)]
pub struct AlertsHandle {
    tests: mpsc::Sender<TestReply>,
    failing: watch::Receiver<Failing>,
    answers: Answers,
}

impl AlertsHandle {
    /// Sets the receiver of answers from elsewhere; a daemon without a server takes none.
    pub fn answer_by(&self, answers: Option<mpsc::Sender<RemoteAnswer>>) {
        if let Some(answers) = answers {
            // A daemon has only one server.
            let _ = self.answers.set(answers);
        }
    }

    /// Sends a test message through each channel.
    pub async fn test(&self) -> Result<Vec<ChannelTest>, RpcError> {
        let ending = || RpcError::new(Fault::Failed, "the daemon is ending");
        let (reply, tested) = oneshot::channel();
        self.tests.send(reply).await.map_err(|_| ending())?;
        tested.await.map_err(|_| ending())
    }

    /// The channels that fail now.
    pub fn failing(&self) -> watch::Receiver<Failing> {
        self.failing.clone()
    }
}

/// Listens to events until the daemon ends; new settings take effect at once.
pub fn start(
    context: &SlotContext,
    settings: watch::Receiver<NotifyConfig>,
    slots: watch::Receiver<Slots>,
) -> (JoinHandle<()>, AlertsHandle) {
    let pusher = Pusher::default();
    let answers = Answers::default();
    // One test at a time.
    let (tests, asked) = mpsc::channel(1);
    let handle = AlertsHandle {
        tests,
        failing: pusher.failing().subscribe(),
        answers: answers.clone(),
    };
    let (bus, audit) = (context.bus.clone(), context.audit.clone());
    let (remote, notes) = RemoteDesk::new(answers, pusher.failing(), audit, bus.clone());
    let alerts = Alerts {
        bus,
        settings,
        slots,
        desk: AlertDesk::default(),
        runner: CommandRunner::new(&context.socket),
        pusher,
        remote,
    };
    (tokio::spawn(alerts.run(asked, notes)), handle)
}

struct Alerts {
    bus: Bus,
    settings: watch::Receiver<NotifyConfig>,
    slots: watch::Receiver<Slots>,
    desk: AlertDesk,
    runner: CommandRunner,
    pusher: Pusher,
    remote: RemoteDesk,
}

impl Alerts {
    async fn run(
        mut self,
        mut tests: mpsc::Receiver<TestReply>,
        mut notes: mpsc::Receiver<AnswerNote>,
    ) {
        let mut events = self.bus.listen().events;
        let mut settings = self.settings.clone();
        loop {
            let config = settings.borrow_and_update().clone();
            self.remote.listen(&config);
            let wakes_at = self.wakes_at(&config);
            let mut over = Vec::new();
            tokio::select! {
                told = events.next() => match told {
                    Some(Ok(told)) => over = self.desk.hear(&told.event, Instant::now()),
                    Some(Err(_)) => over = self.look_at_all(),
                    None => return,
                },
                () = until(wakes_at) => {}
                code = self.remote.next() => self.remote.hear(&code, &self.slots.borrow()),
                Some(AnswerNote { slot, text }) = notes.recv() => {
                    if let Some(post) = note_post(&config, &slot, &text) {
                        self.pusher.send(post);
                    }
                }
                Some(reply) = tests.recv() => self.test(&config, reply),
                changed = settings.changed() => match changed {
                    // Alerts that are due go out with the new settings.
                    Ok(()) => {
                        self.forget_removed(&settings.borrow());
                        continue;
                    }
                    Err(_) => return,
                },
            }
            for alert in over {
                self.remote.over(&alert);
                self.push(&config, &alert, &Buttons::default());
            }
            if quiet_left(&config).is_none() {
                self.call(&config);
            }
        }
    }

    /// Removes failures of channels that are no longer configured.
    fn forget_removed(&self, config: &NotifyConfig) {
        let posts = posts(config, &test_alert(), &Buttons::default());
        let is_used = |part: &str| {
            posts
                .iter()
                .any(|post| part.starts_with(post.channel.word()))
        };
        self.pusher.failing().send_if_modified(|failing| {
            let before = failing.len();
            failing.retain(|part, _| is_used(part));
            failing.len() != before
        });
    }

    /// The next time at which an alert is due, as far as it is known now.
    fn wakes_at(&self, config: &NotifyConfig) -> Option<Instant> {
        let due = self.desk.due(config.notify_after)?;
        Some(match quiet_left(config) {
            Some(left) => due.max(Instant::now() + left.min(LONGEST_QUIET)),
            None => due,
        })
    }

    /// Calls a person for every alert that has waited long enough.
    fn call(&mut self, config: &NotifyConfig) {
        for mut alert in self.desk.take_due(config.notify_after, Instant::now()) {
            let slot = self.slots.borrow().get(&alert.slot).cloned();
            if let Some(slot) = slot {
                alert.complete(&slot.status());
            }
            let buttons = self.remote.buttons(config, &alert);
            self.push(config, &alert, &buttons);
            if !config.command.is_empty() {
                self.runner.tell(&self.bus, config.command.clone(), alert);
            }
        }
    }

    fn push(&mut self, config: &NotifyConfig, alert: &Alert, buttons: &Buttons) {
        for post in posts(config, alert, buttons) {
            self.pusher.send(post);
        }
    }

    /// After missed events, compares the alerts with the slots' present dialogs.
    fn look_at_all(&mut self) -> Vec<Alert> {
        let slots = self.slots.borrow().clone();
        let up = slots.values().map(|slot| slot.status());
        let up = up.map(|status| (status.slot, status.dialog));
        self.desk.compare(up, Instant::now())
    }

    fn test(&mut self, config: &NotifyConfig, reply: TestReply) {
        let alert = test_alert();
        let posts = posts(config, &alert, &Buttons::default()).into_iter();
        let sent: Vec<_> = posts
            .map(|post| (post.channel, self.pusher.test(post)))
            .collect();
        let (runner, command) = (self.runner.clone(), config.command.clone());
        tokio::spawn(async move {
            let mut tested = Vec::new();
            if !command.is_empty() {
                let began = Instant::now();
                let ran = runner.run(&command, &alert).await;
                tested.push(ChannelTest::new("command", ran.map(|()| began.elapsed())));
            }
            for (channel, result) in sent {
                let result: Option<Delivered> = result.await.ok();
                let result = result.map(|result| result.map_err(|error| error.text));
                let result = result.unwrap_or_else(|| Err("the daemon is ending".to_owned()));
                tested.push(ChannelTest::new(channel.word(), result));
            }
            // The client may be gone.
            let _ = reply.send(tested);
        });
    }
}

fn quiet_left(config: &NotifyConfig) -> Option<Duration> {
    config.quiet?.left(Local::now().time())
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
