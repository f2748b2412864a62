//! What a slot knows of Claude Code: what its screen shows, what the other witnesses say, and the turn that is under way.

use super::answer::TurnPlace;
use super::stream::SoFar;
use super::witness::Witnesses;
use crate::core::claude::reading::{Observed, Observer, Seen};
use crate::core::claude::transcript::Figures;
use crate::core::machine::{self, Input, Observation};
use crate::core::terminal::{At, Frame};
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

/// The future that looks for the answer of the turn that has just ended, and for what it tells of the conversation.
pub(super) type Search = Pin<Box<dyn Future<Output = (machine::Answer, Option<Figures>)> + Send>>;

/// What comes of Claude Code with nothing new on its screen.
#[derive(Debug)]
pub(crate) enum ClaudeNews {
    /// The answer of the turn that has just ended.
    Answer(machine::Answer),
    /// The witnesses are to be asked.
    Witnesses,
}

#[derive(Default)]
pub(crate) struct Claude {
    observer: Observer,
    /// What the machine was told last of the screen.
    last_seen: Option<Observation>,
    so_far: SoFar,
    witnesses: Witnesses,
    turn_began: Option<TurnPlace>,
    searching: Option<Search>,
}

impl Claude {
    pub fn observed(&self) -> &Observed {
        self.observer.observed()
    }

    /// Another observer has read the screen from the recording, or nobody has.
    pub fn observe_with(&mut self, observer: Observer) {
        self.observer = observer;
    }

    pub fn see(&mut self, frame: &Frame) {
        self.observer.see(frame);
    }

    /// Nothing came until then. Whether that changes what is observed.
    pub fn wait(&mut self, at: At) -> bool {
        self.observer.wait(at).is_some()
    }

    /// What was observed, if it is news to the machine.
    pub fn news(&mut self) -> Option<Input> {
        let sight = self.sight();
        let before = self.last_seen.replace(sight.clone());
        (before.as_ref() != Some(&sight)).then_some(Input::Saw(sight))
    }

    fn sight(&self) -> Observation {
        let observed = self.observer.observed();
        Observation {
            state: observed.state,
            certain: observed.reading.seen != Seen::Unknown,
            redrawing: self.observer.awaits_drawing(),
            dialog: observed.dialog.clone(),
            composer: observed.reading.composer.clone(),
            mode: observed.reading.mode.clone(),
            last_error: observed.reading.last_error.clone(),
            background: observed.reading.background,
        }
    }

    pub fn last_seen(&self) -> Option<&Observation> {
        self.last_seen.as_ref()
    }

    pub(super) fn so_far(&mut self) -> &mut SoFar {
        &mut self.so_far
    }

    pub(super) fn witnesses(&self) -> &Witnesses {
        &self.witnesses
    }

    pub(super) fn witnesses_mut(&mut self) -> &mut Witnesses {
        &mut self.witnesses
    }

    /// A turn begins, at this place of the transcript.
    pub fn begin_turn(&mut self, place: Option<TurnPlace>) {
        self.turn_began = place;
    }

    /// Where the turn began; `/clear` may have begun another transcript since.
    pub fn answer_place(&self, now: Option<PathBuf>) -> Option<TurnPlace> {
        match (now, self.turn_began.clone()) {
            (Some(now), Some(began)) if began.transcript == now => Some(began),
            (Some(now), _) => Some(TurnPlace {
                transcript: now,
                offset: Some(0),
            }),
            (None, began) => began,
        }
    }

    pub fn search(&mut self, search: Search) {
        self.searching = Some(search);
    }

    /// What comes of Claude Code by itself.
    pub async fn next(&mut self) -> ClaudeNews {
        let (answer, figures) = tokio::select! {
            biased;
            found = found(&mut self.searching) => found,
            () = self.witnesses.have_news() => return ClaudeNews::Witnesses,
        };
        self.searching = None;
        self.witnesses.told(figures);
        ClaudeNews::Answer(answer)
    }

    /// The program has ended, or another one begins.
    pub fn forget(&mut self) {
        let observer = std::mem::take(&mut self.observer);
        *self = Claude {
            observer,
            ..Claude::default()
        };
    }
}

/// What a search has found; never, if there is none.
async fn found(searching: &mut Option<Search>) -> (machine::Answer, Option<Figures>) {
    match searching {
        Some(searching) => searching.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn what_is_seen_is_news_once_until_it_is_forgotten() {
        let mut claude = Claude::default();
        assert!(claude.news().is_some());
        assert!(claude.news().is_none());
        claude.forget();
        assert!(claude.last_seen().is_none());
        assert!(claude.news().is_some());
    }

    #[test]
    fn an_answer_is_looked_for_from_where_the_turn_began() {
        let mut claude = Claude::default();
        let (one, other) = (PathBuf::from("/one"), PathBuf::from("/other"));
        let place = |transcript: &PathBuf, offset| {
            let transcript = transcript.clone();
            Some(TurnPlace { transcript, offset })
        };
        assert_eq!(claude.answer_place(None), None);
        claude.begin_turn(place(&one, Some(7)));
        assert_eq!(claude.answer_place(Some(one.clone())), place(&one, Some(7)));
        assert_eq!(claude.answer_place(None), place(&one, Some(7)));
        // After `/clear` all of the new transcript is of this turn.
        assert_eq!(
            claude.answer_place(Some(other.clone())),
            place(&other, Some(0))
        );
        // An unknown place stays unknown: before it are answers of other turns.
        claude.begin_turn(place(&one, None));
        assert_eq!(claude.answer_place(Some(one.clone())), place(&one, None));
    }

    #[test]
    fn an_answer_is_told_once() {
        let mut claude = Claude::default();
        assert!(claude.next().now_or_never().is_none());
        let found = machine::Answer {
            text: Some("yes".to_owned()),
            source: "screen",
            failure: None,
        };
        claude.search(Box::pin(async move { (found, None) }));
        let news = claude.next().now_or_never();
        let Some(ClaudeNews::Answer(answer)) = news else {
            panic!("it is found");
        };
        assert_eq!(answer.text.as_deref(), Some("yes"));
        assert!(claude.next().now_or_never().is_none());
    }
}
