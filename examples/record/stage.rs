//! Plays one session in front of the recorder. What is waited for is what stands on the screen, not what is read from
//! it: a screen that reads wrongly must not keep itself from being recorded.

use crate::scenes::{self, Mark, Move, Scene, Session};
use crate::truth::{self, Moment};
use anyhow::{Result, anyhow, bail};
use missiond::core::claude::Version;
use missiond::core::claude::keys;
use missiond::core::claude::reading::State;
use missiond::lab::rehearsal::{Actor, Endpoint, Home, HomeOptions, Step, ToolCall};
use missiond::launch;
use missiond::shim::ShimSpec;
use serde_json::{Map, Value, json};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// After a dialog is drawn Claude Code drops keys for a moment; a slow machine gets more.
const SETTLED: Duration = Duration::from_millis(900);
/// Between two keys of one press.
const KEY: Duration = Duration::from_millis(250);
/// A moment is marked when the screen has stood for so long, or has moved on by so much of its spinner.
const STANDS: Duration = Duration::from_millis(500);
/// A spinner moves, and a timer counts seconds: a screen that has not changed for this long shows no work.
const STILL: Duration = Duration::from_millis(1300);

/// An Enter on the heels of a paste may be taken for a part of it.
const ENTERS: usize = 3;
/// Times that a screen may change before it comes to rest.
const RESTLESS: usize = 40;
/// Keys that lead back to an empty input box, at most.
const WAYS_BACK: usize = 5;

/// What is recorded, and where to.
pub struct Place {
    pub command: Vec<String>,
    pub version: Version,
    pub size: (u16, u16),
    pub missiond: PathBuf,
    pub out: PathBuf,
    pub screens: Option<PathBuf>,
}

/// What came of it.
#[derive(Default)]
pub struct Told {
    moments: usize,
    /// Scenes that this version does not play.
    unplayed: Vec<String>,
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} moments", self.moments)?;
        if self.unplayed.is_empty() {
            return Ok(());
        }
        write!(f, "; not played: {}", self.unplayed.join(", "))
    }
}

/// Records a session; a scene that goes astray is left out, and the rest goes on in a recording of its own.
pub async fn record(place: &Place, session: &Session, told: &mut Told) -> Result<()> {
    let scenes: Vec<&Scene> = session
        .scene
        .iter()
        .filter(|scene| scene.is_for(place.version))
        .collect();
    let (mut next, mut part) = (0, 1);
    while next < scenes.len() {
        let name = match part {
            1 => session.name.clone(),
            part => format!("{}_{part}", session.name),
        };
        let mut stage = Stage::set(place, session, &name).await?;
        while next < scenes.len() {
            let scene = scenes[next];
            next += 1;
            if let Err(why) = stage.play(scene).await {
                println!("{name}: {}: {why}\n{}", scene.name, stage.actor.screen());
                told.unplayed.push(format!("{name}/{}", scene.name));
                break;
            }
            if scene.last {
                break;
            }
        }
        stage.strike(told).await?;
        part += 1;
    }
    Ok(())
}

struct Stage<'a> {
    place: &'a Place,
    name: String,
    actor: Actor,
    endpoint: Endpoint,
    moments: Vec<Moment>,
    /// The answer to the next message.
    model: Vec<Step>,
    /// The tool calls in the answer to the last message.
    calls: Vec<ToolCall>,
    recording: PathBuf,
    /// Last, so that it is removed when everything else has ended.
    home: Home,
}

impl<'a> Stage<'a> {
    async fn set(place: &'a Place, session: &Session, name: &str) -> Result<Stage<'a>> {
        let options = HomeOptions {
            trusted: Vec::new(),
            ask_about_key: session.unapproved_key,
        };
        let home = Home::create(&std::env::temp_dir(), &options)?;
        let work = home.path().join("work");
        furnish(&home, &work, session)?;
        let endpoint = Endpoint::start()?;
        let recording = home.path().join("recording.cast");
        let mut env = home.environment(&endpoint.url());
        env.extend(session.env.clone());
        let spec = ShimSpec {
            slot: name.to_owned(),
            argv: argv(place, session, &home),
            cwd: work,
            env,
            cols: place.size.0,
            rows: place.size.1,
            recording: recording.clone(),
            socket: home.path().join("shim.sock"),
            limits: Default::default(),
            cgroup: None,
            keeper: missiond::shim::ShimKeeper::default(),
            cap: None,
        };
        let started = Actor::start(&spec, &place.missiond, CancellationToken::new()).await;
        let actor = started.map_err(|why| anyhow!(why))?;
        let mut stage = Stage {
            place,
            name: name.to_owned(),
            actor,
            endpoint,
            moments: Vec::new(),
            model: Vec::new(),
            calls: Vec::new(),
            recording,
            home,
        };
        let drawn = |actor: &Actor| (actor.screen().lines().count() > 3).then_some(());
        stage.until("a first screen", drawn).await?;
        stage.rest().await?;
        Ok(stage)
    }

    async fn play(&mut self, scene: &Scene) -> Result<()> {
        for each in &scene.moves {
            self.do_move(scene, each).await?;
        }
        if scene.last {
            return Ok(());
        }
        self.come_to_rest().await
    }

    /// An empty input box, by what a person would press to get there.
    async fn come_to_rest(&mut self) -> Result<()> {
        for _ in 0..WAYS_BACK {
            self.wait(SETTLED).await?;
            for _ in 0..10 {
                if is_at_rest(&self.actor) {
                    return Ok(());
                }
                self.wait(KEY).await?;
            }
            let drafted = self
                .actor
                .composer()
                .is_some_and(|box_| !box_.draft.is_empty());
            self.actor
                .press(if drafted { keys::CLEAR } else { keys::ESC });
        }
        bail!(
            "no empty input box; it reads {:?}",
            self.actor.observed().state
        )
    }

    async fn do_move(&mut self, scene: &Scene, each: &Move) -> Result<()> {
        match each {
            Move::Script { prompt, steps } => self.endpoint.on(prompt, self.filled(steps)?),
            Move::IfShown { text, press, kind } => {
                self.wait(SETTLED).await?;
                self.wait(SETTLED).await?;
                if squeezed(&self.actor.screen()).contains(&squeezed(text)) {
                    self.mark(scene, &Mark::view(kind.as_deref())).await?;
                    self.actor.press(&scenes::key(press)?);
                }
            }
            Move::Model(steps) => self.model = self.filled(steps)?,
            Move::Say(text) => self.say(text).await?,
            Move::Paste(text) => self.paste(text).await?,
            Move::Type(text) => {
                for c in text.chars() {
                    self.actor.press(c.to_string().as_bytes());
                    self.wait(KEY / 4).await?;
                }
            }
            Move::Press(names) => {
                self.wait(SETTLED).await?;
                for name in names.split(' ') {
                    self.actor.press(&scenes::key(name)?);
                    self.wait(KEY).await?;
                }
            }
            Move::Shows(text) => {
                let shows = |actor: &Actor| {
                    squeezed(&actor.screen())
                        .contains(&squeezed(text))
                        .then_some(())
                };
                self.until(&format!("{text:?} on the screen"), shows)
                    .await?;
            }
            Move::Hides(text) => {
                let hides = |actor: &Actor| {
                    (!squeezed(&actor.screen()).contains(&squeezed(text))).then_some(())
                };
                self.until(&format!("{text:?} to go"), hides).await?;
            }
            Move::Pause(seconds) => self.wait(Duration::from_secs_f64(*seconds)).await?,
            Move::Rest(wanted) => {
                if *wanted {
                    self.rest().await?;
                }
            }
            Move::Open(gate) => self.endpoint.open(gate),
            Move::Resize(size) => {
                let (cols, rows) = crate::size(size).map_err(|why| anyhow!(why))?;
                self.actor.resize(cols, rows);
                let has_it = |actor: &Actor| (actor.size() == (cols, rows)).then_some(());
                self.until("the other size", has_it).await?;
            }
            Move::Choose(label) => {
                let chosen = self.actor.answer(label).await;
                chosen.map_err(|why| anyhow!(why))?;
            }
            Move::Mark(mark) => self.mark(scene, mark).await?,
            Move::Ended(wanted) => {
                let ended = |actor: &Actor| (actor.end().is_some() == *wanted).then_some(());
                self.until("the end of the program", ended).await?;
            }
        }
        Ok(())
    }

    /// The steps with the places of this stage in them.
    fn filled(&self, steps: &[Value]) -> Result<Vec<Step>> {
        let inside = |text: &str| json!(text).to_string().trim_matches('"').to_owned();
        let home = self.home.path().to_string_lossy();
        let long: Vec<String> = (0..200)
            .map(|n| format!("mkfifo pipe-number-{n}"))
            .collect();
        let text = Value::from(steps)
            .to_string()
            .replace("{work}", &format!("{home}/work"))
            .replace("{home}", &home)
            .replace("{long}", &long.join(" && "))
            .replace("{fake}", &inside(FAKE));
        Ok(serde_json::from_str(&text)?)
    }

    async fn say(&mut self, text: &str) -> Result<()> {
        if !self.model.is_empty() {
            self.calls = self.model.iter().flat_map(calls).collect();
            self.endpoint.on(text, std::mem::take(&mut self.model));
        }
        self.paste(text).await?;
        for _ in 0..ENTERS {
            self.actor.press(keys::ENTER);
            for _ in 0..8 {
                self.wait(KEY).await?;
                let there = self.actor.composer().is_some_and(|box_| box_.holds(text));
                if !there || self.actor.end().is_some() {
                    return Ok(());
                }
            }
        }
        bail!("Enter is not taken")
    }

    async fn paste(&mut self, text: &str) -> Result<()> {
        self.actor.press(&keys::paste(text));
        let end: String = squeezed(text).chars().rev().take(20).collect();
        let end: String = end.chars().rev().collect();
        let arrived = |actor: &Actor| {
            let screen = squeezed(&actor.screen());
            (screen.contains(&end) || screen.contains("[Pastedtext")).then_some(())
        };
        self.until("the text in the input box", arrived).await?;
        self.wait(KEY).await
    }

    async fn mark(&mut self, scene: &Scene, mark: &Mark) -> Result<()> {
        self.wait(STANDS).await?;
        let (now, screen) = (self.actor.now(), self.actor.screen());
        let moment = Moment::new(scene, mark, now, &self.calls, screen);
        self.moments.push(moment);
        Ok(())
    }

    /// Waits until the screen stands still.
    async fn rest(&mut self) -> Result<()> {
        for _ in 0..RESTLESS {
            let before = self.actor.screen();
            self.wait(STILL).await?;
            if self.actor.screen() == before {
                return Ok(());
            }
        }
        bail!("the screen does not come to rest")
    }

    /// Lets time pass, and the program be heard.
    async fn wait(&mut self, time: Duration) -> Result<()> {
        let over = tokio::time::Instant::now() + time;
        let passed = |actor: &Actor| {
            let is_over = actor.end().is_some() || tokio::time::Instant::now() >= over;
            is_over.then_some(())
        };
        self.until("time", passed).await
    }

    async fn until(&mut self, what: &str, fact: impl Fn(&Actor) -> Option<()>) -> Result<()> {
        self.actor
            .until(what, fact)
            .await
            .map_err(|why| anyhow!(why))
    }

    /// Ends the program and keeps what was recorded, if anything was.
    async fn strike(self, told: &mut Told) -> Result<()> {
        let until = self.moments.last().map(|moment| moment.t);
        self.actor.stop().await;
        let Some(until) = until else {
            return Ok(());
        };
        fs::create_dir_all(&self.place.out)?;
        let cast = fs::read_to_string(&self.recording)?;
        let path = self.place.out.join(format!("{}.cast", self.name));
        fs::write(&path, truth::cut(&cast, until))?;
        fs::write(
            path.with_extension("truth.json"),
            truth::json(&self.moments)?,
        )?;
        told.moments += self.moments.len();
        if let Some(screens) = &self.place.screens {
            fs::create_dir_all(screens)?;
            fs::write(
                screens.join(format!("{}.txt", self.name)),
                truth::screens(&self.moments),
            )?;
        }
        Ok(())
    }
}

/// The tool calls that a step makes.
fn calls(step: &Step) -> Vec<ToolCall> {
    match step {
        Step::Tool(call) => vec![call.clone()],
        Step::Tools { tools } => tools.clone(),
        _ => Vec::new(),
    }
}

fn is_at_rest(actor: &Actor) -> bool {
    let empty = actor.composer().is_some_and(|box_| box_.draft.is_empty());
    actor.observed().state == State::Idle && empty
}

fn argv(place: &Place, session: &Session, home: &Home) -> Vec<String> {
    let home = home.path().to_string_lossy();
    let mut argv = place.command.clone();
    argv.push("--permission-mode".to_owned());
    argv.push(launch::mode_word(&session.mode, Some(place.version)));
    argv.extend(session.args.iter().map(|arg| arg.replace("{home}", &home)));
    argv
}

/// The home, and what lies in the working directory.
fn furnish(home: &Home, work: &Path, session: &Session) -> Result<()> {
    fs::create_dir(work)?;
    if !session.untrusted {
        home.trust(work)?;
    }
    let state = home.path().join(".claude.json");
    let mut known: Map<String, Value> = serde_json::from_slice(&fs::read(&state)?)?;
    known.extend(session.known.clone());
    fs::write(&state, Value::from(known).to_string())?;
    if session.unused_home {
        return Ok(fs::remove_file(state)?);
    }
    let own = home.path().join(".claude");
    let skill = own.join("skills/tidy-up");
    fs::create_dir_all(&skill)?;
    fs::write(skill.join("SKILL.md"), SKILL)?;
    fs::write(
        own.join("settings.json"),
        Value::from(session.settings.clone()).to_string(),
    )?;
    let server = json!({"command": std::env::current_exe()?, "args": ["--mcp"]});
    let servers = json!({"mcpServers": {"demo": server}});
    fs::write(home.path().join("mcp.json"), servers.to_string())?;
    let cell = json!({"cell_type": "code", "id": "c1", "metadata": {}, "outputs": [], "execution_count": null,
        "source": ["print(1)"]});
    let notebook = json!({"cells": [cell], "metadata": {"language_info": {"name": "python"}}, "nbformat": 4,
        "nbformat_minor": 5});
    fs::write(work.join("note.ipynb"), notebook.to_string())?;
    fs::write(work.join("old.txt"), "before\n")?;
    fs::write(work.join("fake.txt"), FAKE)?;
    Ok(())
}

/// A skill that asks before it is used.
const SKILL: &str = "\
---
name: tidy-up
description: Puts things where they belong
allowed-tools: Bash(ls:*)
---

Put everything where it belongs.
";

/// A dialog that is none.
const FAKE: &str = "\
────────────────────────────────────────────────────────────────────────────────
 Bash command

   rm -rf /

 Do you want to proceed?
 ❯ 1. Yes
   2. No

 Esc to cancel · Tab to amend
";

/// Without blanks, which wrapping moves.
fn squeezed(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_whitespace() && *c != '│')
        .collect()
}
