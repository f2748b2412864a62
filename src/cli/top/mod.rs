//! `missiond top`: the verb and its loop are here. `state` is what the dashboard knows and what keys do to it, `draw` and
//! `card` show it, `feed` brings what happens, `act` does what the person wants, `tui` is the person's terminal.

mod act;
mod card;
mod draw;
mod feed;
mod lists;
mod prompt;
mod receipt;
#[cfg(test)]
mod sample;
mod state;
#[cfg(test)]
mod tests;
mod tui;

use crate::cli::columns;
use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::flags::Colour;
use crate::cli::signals::{HeardSignal, Signals};
use crate::cli::status::not_taken;
use crate::cli::target::{self, Target};
use crate::slot::journal::log_summary;
use crossterm::event::{Event, EventStream, KeyEventKind};
use draw::{Drawn, Look};
use feed::FeedNews;
use futures_util::StreamExt;
use lists::Tab;
use state::{Action, AskToExplain, Dashboard};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tui::Tui;

/// The clock in the corner counts seconds.
const TICK: Duration = Duration::from_secs(1);
/// Between two drawings.
const PAUSE: Duration = Duration::from_millis(50);
/// The same over a network, where each drawing travels.
const PAUSE_FAR: Duration = Duration::from_millis(200);

/// Shows all slots, who waits for you, and takes your answers.
///
/// The slots that wait for you come first. Below the table stands the whole request of the slot under the cursor, with
/// the reason why no rule answered it; y answers yes once its end was on the screen, n answers no. With nothing to
/// answer, the slot's live screen is shown there. Looking on never changes the size of a slot. ? lists all keys.
///
/// q leaves; the daemon and its slots go on.
#[derive(Debug, Default, clap::Args)]
#[command(after_help = "\
Examples:
  missiond top
  missiond top -c slots.toml
  missiond                              the same, on a terminal where a daemon runs")]
pub struct Top {}

impl Top {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        if context.out.json {
            return Err(Failure::usage("top draws on a terminal")
                .next("as JSON: missiond status --json, missiond events -f"));
        }
        tui::check()?;
        let target = target::find(context).await?;
        // A daemon that is not there at the start is an error of its own; one that goes later is waited for.
        drop(context.connect_to(target.clone()).await?);
        Loop::new(context, target)?.run().await
    }
}

struct Loop {
    target: Target,
    dashboard: Dashboard,
    tui: Tui,
    look: (bool, bool),
    pause: Duration,
    sender: mpsc::Sender<FeedNews>,
    news: mpsc::Receiver<FeedNews>,
    /// The slot whose screen is shown.
    wanted: watch::Sender<Option<String>>,
    /// The ask that is explained.
    explained: watch::Sender<Option<AskToExplain>>,
    /// The tab beside the slots that is shown.
    listed: watch::Sender<Option<Tab>>,
    signals: Signals,
}

impl Loop {
    fn new(context: &Context, target: Target) -> Result<Loop, Failure> {
        let far = std::env::var_os("SSH_CONNECTION").is_some();
        let pause = if far { PAUSE_FAR } else { PAUSE };
        let (sender, news) = mpsc::channel(feed::MAX_NEWS);
        let (wanted, screen) = watch::channel(None);
        let (explained, ask) = watch::channel(None);
        let (listed, tab) = watch::channel(None);
        tokio::spawn(feed::statuses(target.clone(), sender.clone()));
        tokio::spawn(feed::explanations(target.clone(), ask, sender.clone()));
        tokio::spawn(feed::lists(target.clone(), tab, sender.clone()));
        tokio::spawn(feed::pictures(
            target.clone(),
            screen,
            sender.clone(),
            pause,
        ));
        Ok(Loop {
            target,
            dashboard: Dashboard::default(),
            tui: Tui::enter()?,
            look: (columns::is_ascii(), has_colours(context.flags.color)),
            pause,
            sender,
            news,
            wanted,
            explained,
            listed,
            signals: Signals::listen()?,
        })
    }

    async fn run(mut self) -> Result<(), Failure> {
        let mut keys = EventStream::new();
        let mut tick = tokio::time::interval(TICK);
        let mut drawn_at: Option<Instant> = None;
        let mut changed = true;
        loop {
            let next_drawing =
                drawn_at.map_or(Duration::ZERO, |at| self.pause.saturating_sub(at.elapsed()));
            let action = tokio::select! {
                heard = self.signals.next() => {
                    changed = true;
                    match heard {
                        HeardSignal::End(name) => {
                            return Err(Failure::failed(format!("ended by {name}")));
                        }
                        HeardSignal::GoesOn => self.tui.take_again()?,
                        // The drawing asks for the size by itself.
                        HeardSignal::Resized => {}
                    }
                    None
                }
                key = keys.next() => {
                    changed = true;
                    match key {
                        Some(Ok(event)) => self.typed(&event),
                        _ => return Err(Failure::failed("the terminal is gone")),
                    }
                }
                Some(news) = self.news.recv() => {
                    changed = true;
                    self.take(news)?;
                    None
                }
                () = tokio::time::sleep(next_drawing), if changed => {
                    self.draw()?;
                    (drawn_at, changed) = (Some(Instant::now()), false);
                    None
                }
                _ = tick.tick() => { changed = true; None }
            };
            match action {
                None => {}
                Some(Action::Quit) => return Ok(()),
                Some(action) => keys = self.act(action, keys).await?,
            }
        }
    }

    /// Does what a person asked for. A command that takes the terminal over gets its keys too, so the stream of keys ends for it
    /// and a new one begins behind it.
    async fn act(&mut self, action: Action, keys: EventStream) -> Result<EventStream, Failure> {
        match action {
            Action::Suspend => self.tui.suspend(),
            Action::Attach(slot) => {
                drop(keys);
                self.command(vec!["attach".to_owned(), slot], false).await?;
                return Ok(EventStream::new());
            }
            Action::Command(arguments) => {
                drop(keys);
                self.command(arguments, true).await?;
                return Ok(EventStream::new());
            }
            action => {
                let done = act::act(self.target.clone(), action, self.sender.clone());
                tokio::spawn(done);
            }
        }
        Ok(keys)
    }

    fn typed(&mut self, event: &Event) -> Option<Action> {
        match event {
            Event::Key(key) if key.kind == KeyEventKind::Press => {
                self.dashboard.key(*key, Instant::now())
            }
            Event::Paste(text) => {
                self.dashboard.paste(text);
                None
            }
            _ => None,
        }
    }

    fn take(&mut self, news: FeedNews) -> Result<(), Failure> {
        match news {
            FeedNews::Statuses { statuses, all } => {
                self.dashboard.connected();
                self.dashboard.update(statuses, all, Instant::now());
            }
            FeedNews::Daemon(daemon) => self.dashboard.warn(not_taken(&daemon, "")),
            FeedNews::Happened(event) => {
                self.dashboard.happened(log_summary(&event));
                self.dashboard.followed(&event);
            }
            FeedNews::Picture(picture) => self.dashboard.shown(picture),
            FeedNews::Listed(listed) => self.dashboard.listed(listed),
            FeedNews::Explained(explained) => self.dashboard.explain(*explained),
            FeedNews::Lost(why) => self.dashboard.lost(why),
            FeedNews::Refused(error) => return Err(error.into()),
            FeedNews::Done(told) => self.dashboard.say(told),
            FeedNews::NotDone { why, dialogs } => self.dashboard.not_answered(&dialogs, why),
        }
        Ok(())
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let (ascii, colours) = self.look;
        let look = Look {
            now: chrono::Utc::now(),
            ascii,
            colours,
        };
        let dashboard = &self.dashboard;
        let mut drawn = Drawn::default();
        let painted = self
            .tui
            .screen
            .draw(|frame| drawn = draw::draw(frame, dashboard, look));
        painted.map_err(|error| Failure::failed(format!("cannot draw: {error}")))?;
        self.dashboard.drawn(drawn);
        let current = self.dashboard.current();
        let shown = current.filter(|_| drawn.shows_terminal);
        let shown = shown.map(|status| status.slot.clone());
        want(&self.wanted, shown);
        want(&self.listed, self.dashboard.list_to_show());
        want(&self.explained, self.dashboard.ask_to_explain());
        Ok(())
    }

    /// Runs a command of missiond on the bare terminal; `wait` until the person has read what it printed.
    async fn command(&mut self, arguments: Vec<String>, wait: bool) -> Result<(), Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::failed(format!("this program is not found: {error}")))?;
        let mut command = tokio::process::Command::new(program);
        command
            .arg("--socket")
            .arg(&self.target.socket)
            .args(&arguments);
        let run = async {
            if wait {
                println!("missiond {} (Ctrl-C ends it)\n", arguments.join(" "));
            }
            let ended = command.status().await;
            if wait {
                println!("\npress Enter to go back to missiond top");
                let line =
                    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
                // An end of the input is as good as Enter.
                let _ = line.await;
            }
            ended
        };
        let ran = self.tui.lend(run).await?;
        // A Ctrl-C meanwhile was for the command.
        self.signals = Signals::listen()?;
        if let Err(error) = ran {
            self.dashboard
                .say(format!("{}: {error}", arguments.join(" ")));
        }
        Ok(())
    }
}

/// Says what is wanted now, if that is something else.
fn want<T: PartialEq>(wanted: &watch::Sender<Option<T>>, now: Option<T>) {
    wanted.send_if_modified(|wanted| {
        let differs = *wanted != now;
        *wanted = now;
        differs
    });
}

fn has_colours(wanted: Colour) -> bool {
    match wanted {
        Colour::Always => true,
        Colour::Never => false,
        Colour::Auto => {
            anstream::AutoStream::choice(&std::io::stdout()) != anstream::ColorChoice::Never
        }
    }
}
