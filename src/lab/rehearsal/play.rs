//! Plays the scenes on an installed program, one start after another, and reports which of them hold.

use super::actor::Actor;
use super::hooks::Hooks;
use super::house::House;
use super::scenes::{self, Act, Opening, Scene, SceneRun, SceneSight, ShownScreen};
use crate::core::claude::Version;
use crate::core::claude::keys;
use crate::core::claude::reading::{Dialog, Observed, State};
use crate::core::machine::{IDLE_IS_OVER, SETTLED};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// After this many failed scenes in a row the rest is not tried: this is a different program.
const ENOUGH_FAILURES: usize = 3;

/// The maximum presses of shift+tab until a mode must have come.
const MODES: usize = 8;
const SHIFT_TAB: &[u8] = b"\x1b[Z";

/// The option that submits the page for a review of answers.
const REVIEWED: &str = "Submit answers";

/// The program to rehearse, and the means for it.
#[derive(Debug, Clone)]
pub struct Company {
    /// The program, with its full path, and its first arguments.
    pub command: Vec<String>,
    pub version: Version,
    /// This program, for the shim and the hooks.
    pub missiond: PathBuf,
    /// Ends the rehearsal early, with everything cleaned up.
    pub cancel: CancellationToken,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SceneOutcome {
    pub scene: &'static str,
    pub result: SceneVerdict,
    /// Whether a key that missiond presses depends on it.
    pub needed: bool,
    pub seconds: f64,
    /// What was awaited, and what came instead; for a scene that holds, what is peculiar to this version.
    pub why: Option<String>,
    /// The screen at that time.
    pub screen: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SceneVerdict {
    Holds,
    Fails,
    /// Not tried, because of earlier failures.
    NotTried,
}

/// Progress for a listener.
#[derive(Debug)]
pub enum SceneProgress<'a> {
    Begins(&'a str),
    Ended(&'a SceneOutcome),
}

/// Plays all scenes; `Err` if the environment could not be made.
pub async fn rehearse(
    company: &Company,
    mut tell: impl FnMut(SceneProgress<'_>),
) -> Result<Vec<SceneOutcome>, String> {
    let mut report = Report::default();
    let openings: Vec<Opening> = scenes::runs(Path::new("/"), company.version)
        .iter()
        .map(|run| run.opening)
        .collect();
    for (index, opening) in openings.into_iter().enumerate() {
        let mut play = Play::open(company, opening).await?;
        let run = scenes::runs(play.house.cwd(), company.version).swap_remove(index);
        let played = play.run(run, &mut report, &mut tell).await;
        play.close().await;
        played?;
    }
    Ok(report.outcomes)
}

#[derive(Debug, Default)]
struct Report {
    outcomes: Vec<SceneOutcome>,
    /// The number of failed scenes in a row.
    failed: usize,
}

impl Report {
    fn add(&mut self, outcome: SceneOutcome, opens: bool) {
        self.failed = match outcome.result {
            SceneVerdict::Holds => 0,
            // If the first scene fails, those after it can't be played.
            _ if opens => ENOUGH_FAILURES,
            _ => self.failed + 1,
        };
        self.outcomes.push(outcome);
    }
}

/// One run: its environment, and the program in it.
struct Play<'a> {
    company: &'a Company,
    house: House,
    actor: Option<Actor>,
}

impl<'a> Play<'a> {
    async fn open(company: &'a Company, opening: Opening) -> Result<Play<'a>, String> {
        let house = House::build(opening, &company.command)
            .map_err(|error| format!("no throw-away home can be made: {error}"))?;
        Ok(Play {
            company,
            house,
            actor: None,
        })
    }

    async fn close(mut self) {
        self.send_home().await;
    }

    async fn send_home(&mut self) {
        if let Some(actor) = self.actor.take() {
            actor.stop().await;
        }
    }

    async fn start(&mut self) -> Result<(), String> {
        let spec = self.house.spec(self.company)?;
        let cancel = self.company.cancel.clone();
        self.actor = Some(Actor::start(&spec, &self.company.missiond, cancel).await?);
        Ok(())
    }

    async fn run(
        &mut self,
        run: SceneRun,
        report: &mut Report,
        tell: &mut impl FnMut(SceneProgress<'_>),
    ) -> Result<(), String> {
        for (index, scene) in run.scenes.iter().enumerate() {
            let opens = index == 0;
            tell(SceneProgress::Begins(scene.name));
            let outcome = match report.failed {
                ENOUGH_FAILURES.. => not_tried(scene),
                _ => self.play(scene, opens).await,
            };
            if self.company.cancel.is_cancelled() {
                return Err("the rehearsal was stopped".to_owned());
            }
            tell(SceneProgress::Ended(&outcome));
            report.add(outcome, opens);
        }
        Ok(())
    }

    async fn play(&mut self, scene: &Scene, opens: bool) -> SceneOutcome {
        let began = Instant::now();
        let played = self.try_scene(scene, opens).await;
        let actor = self.actor.as_ref();
        let (result, why, screen) = match played {
            Ok(()) => (SceneVerdict::Holds, actor.and_then(Actor::remark), None),
            Err(why) => (SceneVerdict::Fails, Some(why), actor.map(Actor::screen)),
        };
        if result == SceneVerdict::Fails {
            // The program's state is unknown now, so the next scene begins with a new start.
            self.send_home().await;
        }
        SceneOutcome {
            result,
            seconds: rounded(began.elapsed()),
            why,
            screen,
            ..not_tried(scene)
        }
    }

    async fn try_scene(&mut self, scene: &Scene, opens: bool) -> Result<(), String> {
        if self.actor.is_none() {
            self.house.hooks.forget();
            if !opens {
                self.house.trust().map_err(|error| error.to_string())?;
            }
            self.start().await?;
            if !opens {
                self.acts(&scenes::start_again()).await?;
            }
        }
        self.house.hooks.begin_scene();
        self.acts(scene).await
    }

    async fn acts(&mut self, scene: &Scene) -> Result<(), String> {
        let actor = self.actor.as_mut().ok_or("the program is not running")?;
        actor.begin_scene();
        for act in &scene.acts {
            perform(act, actor, &self.house).await?;
        }
        Ok(())
    }
}

fn not_tried(scene: &Scene) -> SceneOutcome {
    SceneOutcome {
        scene: scene.name,
        result: SceneVerdict::NotTried,
        needed: scene.needed,
        seconds: 0.0,
        why: None,
        screen: None,
    }
}

fn rounded(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

async fn perform(act: &Act, actor: &mut Actor, house: &House) -> Result<(), String> {
    match act {
        Act::Say(message, steps) => {
            house.endpoint.on(message, steps.clone());
            actor.say(message).await
        }
        Act::Paste(text) => actor.paste(text).await.map(drop),
        Act::Press(keys) => {
            // At the pace of a slot, which presses no key on a screen that was drawn just now.
            tokio::time::sleep(SETTLED).await;
            actor.press(keys);
            Ok(())
        }
        Act::TurnIsOver => {
            let over = |actor: &Actor| is_over(actor, &house.hooks).then_some(());
            actor.until("the end of the turn", over).await
        }
        Act::Mode(mode) => reach_mode(actor, mode).await,
        Act::Open(gate) => {
            house.endpoint.open(gate);
            Ok(())
        }
        Act::Create(file) => std::fs::write(file, "").map_err(|error| error.to_string()),
        Act::Rule(rule) => {
            house.hooks.set(*rule);
            Ok(())
        }
        Act::Answer(answer) => actor.answer(answer).await,
        Act::See(sight) => see(actor, sight).await,
        Act::Hear(hook) => {
            let what = format!("the hook {hook}");
            actor
                .until(&what, |_| house.hooks.heard(hook).then_some(()))
                .await
        }
        Act::SessionBegan => {
            let began = |_: &Actor| house.hooks.session_began().then_some(());
            actor.until("the hook SessionStart", began).await
        }
        Act::Told(text) => {
            let told = |_: &Actor| house.endpoint.was_told(text).then_some(());
            actor.until("the model to be told", told).await
        }
        Act::Answered(text) => submit(actor, house, text).await,
        Act::Streams(beginning) => see_text_come(actor, beginning).await,
        Act::Made(file, text) => {
            let what = format!("the file {}", file.display());
            actor
                .until(&what, |_| is_made(file, text).then_some(()))
                .await
        }
        Act::NotMade(file) if file.exists() => Err(format!("{} was made", file.display())),
        Act::NoDialog if actor.met_dialog() => Err("a dialog was read".to_owned()),
        Act::NotMade(_) | Act::NoDialog => Ok(()),
        Act::Ended => {
            let ended = |actor: &Actor| actor.end().map(|_| ());
            actor.until("the end of the program", ended).await
        }
    }
}

/// Tells whether the turn is over: by Claude Code's own hook or, if its hooks do not arrive, by a screen that stays
/// idle.
fn is_over(actor: &Actor, hooks: &Hooks) -> bool {
    hooks.heard("Stop") || (!hooks.session_began() && actor.idle_for() >= IDLE_IS_OVER)
}

/// Submits the answers. Some versions have a page on which even a single answer is reviewed.
async fn submit(actor: &mut Actor, house: &House, text: &str) -> Result<(), String> {
    let reviewed = |actor: &Actor| {
        let dialog = actor.observed().dialog.as_ref()?;
        keys::pick(dialog, REVIEWED).ok().map(|_| true)
    };
    let told = |actor: &Actor| {
        house
            .endpoint
            .was_told(text)
            .then_some(false)
            .or_else(|| reviewed(actor))
    };
    if actor.until("the model to be told", told).await? {
        actor.answer(REVIEWED).await?;
    }
    let told = |_: &Actor| house.endpoint.was_told(text).then_some(());
    actor.until("the model to be told", told).await
}

/// Waits for streamed text. A version that draws a paragraph as soon as it is complete does so within a second; others
/// draw the whole answer at once, and there is no text to read before.
async fn see_text_come(actor: &mut Actor, beginning: &str) -> Result<(), String> {
    const DRAWN: Duration = Duration::from_secs(5);
    let patience = Instant::now() + DRAWN;
    let come = |actor: &Actor| match actor.observed().state {
        State::Responding => Some(true),
        state if !works(state) || Instant::now() < patience => None,
        _ => (!actor.screen().contains(beginning)).then_some(false),
    };
    if !actor.until("the state Responding", come).await? {
        actor.note("this version draws no text before it is whole, so that it reads as thinking");
    }
    Ok(())
}

/// Presses shift+tab until the mode is there. The order of modes differs; the effect of each press is awaited before
/// the next.
async fn reach_mode(actor: &mut Actor, wanted: &str) -> Result<(), String> {
    for _ in 0..MODES {
        let now = mode(actor);
        if now == wanted {
            return Ok(());
        }
        actor.press(SHIFT_TAB);
        let moved = |actor: &Actor| (mode(actor) != now).then_some(());
        actor.until("another mode", moved).await?;
    }
    Err(format!("shift+tab never came to the mode {wanted}"))
}

/// The present mode. Older versions name every mode but the manual one.
fn mode(actor: &Actor) -> String {
    let named = actor.observed().reading.mode.clone();
    named.unwrap_or_else(|| "manual".to_owned())
}

async fn see(actor: &mut Actor, sight: &SceneSight) -> Result<(), String> {
    let what = sight.in_words();
    let seen = actor
        .until(&what, |actor| sight.fits(actor.observed()).ok())
        .await;
    seen.map_err(|why| match sight.fits(actor.observed()) {
        Err(differs) => format!("{why} ({differs})"),
        Ok(()) => why,
    })
}

/// Tells whether the file exists with this text. Without a text it is not read, since reading a pipe would block.
fn is_made(file: &Path, text: &str) -> bool {
    if text.is_empty() {
        return file.exists();
    }
    std::fs::read_to_string(file).is_ok_and(|found| found.contains(text))
}

impl SceneSight {
    fn in_words(&self) -> String {
        match (&self.dialog, self.state) {
            (Some(shown), _) => format!(
                "the dialog {:?} {}",
                shown.kind,
                shown.tool.unwrap_or_default()
            ),
            (None, Some(state)) => format!("the state {state:?}"),
            (None, None) if self.at_work => "any state of work".to_owned(),
            (None, None) => "the screen".to_owned(),
        }
    }

    /// Checks whether the screen reads like this; the error is the first difference.
    fn fits(&self, observed: &Observed) -> Result<(), String> {
        let reading = &observed.reading;
        if let Some(state) = self.state.filter(|state| *state != observed.state) {
            return Err(format!("not {state:?}"));
        }
        if self.at_work && !works(observed.state) {
            return Err("not at work".to_owned());
        }
        match (&self.dialog, &observed.dialog) {
            (Some(shown), Some(dialog)) => shown.fits(dialog)?,
            (None, None) => {}
            (_, dialog) => return Err(format!("dialog: {}", dialog.is_some())),
        }
        let draft = reading
            .composer
            .as_ref()
            .map(|composer| composer.draft.as_str());
        let error = reading.last_error.as_deref();
        differs("draft", self.draft, |wanted| draft == Some(wanted))?;
        differs("error", self.error, |wanted| {
            error.is_some_and(|text| text.contains(wanted))
        })
    }
}

fn works(state: State) -> bool {
    matches!(
        state,
        State::Thinking | State::Responding | State::ToolRunning
    )
}

fn differs(what: &str, wanted: Option<&str>, holds: impl Fn(&str) -> bool) -> Result<(), String> {
    match wanted {
        Some(wanted) if !holds(wanted) => Err(format!("{what}: {wanted:?} was not read")),
        _ => Ok(()),
    }
}

impl ShownScreen {
    fn fits(&self, dialog: &Dialog) -> Result<(), String> {
        if dialog.kind != self.kind {
            return Err(format!("kind: {:?}", dialog.kind));
        }
        if self.tool.is_some() && self.tool != dialog.tool.as_deref() {
            return Err(format!("tool: {:?}", dialog.tool));
        }
        if let Some((key, value)) = &self.input {
            let read = dialog
                .input
                .as_ref()
                .and_then(|input| input.get(*key)?.as_str());
            // A path may be shown in full or relative to the working directory.
            if !read.is_some_and(|read| read == value || read.ends_with(&format!("/{value}"))) {
                return Err(format!("{key}: {read:?}"));
            }
        }
        if !self.answers.is_empty() && !dialog.complete {
            return Err("the dialog is not whole".to_owned());
        }
        for answer in self.answers {
            keys::pick(dialog, answer).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// Tells whether all scenes hold that a key depends on.
pub fn holds(outcomes: &[SceneOutcome]) -> bool {
    let needed = outcomes.iter().filter(|outcome| outcome.needed);
    needed.clone().count() > 0
        && needed
            .clone()
            .all(|outcome| outcome.result == SceneVerdict::Holds)
}

/// The scenes that do not hold.
pub fn failed(outcomes: &[SceneOutcome]) -> Vec<String> {
    let failed = outcomes
        .iter()
        .filter(|outcome| outcome.result != SceneVerdict::Holds);
    failed.map(|outcome| outcome.scene.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(result: SceneVerdict, needed: bool) -> SceneOutcome {
        SceneOutcome {
            scene: "idle",
            result,
            needed,
            seconds: 0.1,
            why: None,
            screen: None,
        }
    }

    #[test]
    fn a_program_holds_by_the_scenes_that_a_key_rests_on() {
        use SceneVerdict::{Fails, Holds, NotTried};
        for (outcomes, expected) in [
            (vec![outcome(Holds, true), outcome(Fails, false)], true),
            (vec![outcome(Holds, true), outcome(NotTried, true)], false),
            (vec![outcome(Fails, true)], false),
            (vec![outcome(Holds, false)], false),
            (vec![], false),
        ] {
            assert_eq!(holds(&outcomes), expected, "{outcomes:?}");
        }
        let outcomes = [outcome(Holds, true), outcome(Fails, false)];
        assert_eq!(failed(&outcomes), ["idle"]);
    }
}
