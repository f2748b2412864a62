//! What the task of a slot does for Claude Code.

use super::Slot;
use super::answer::{self, TurnPlace};
use super::claude::{Claude, ClaudeNews};
use super::context::SlotContext;
use super::handle::Answer;
use super::inbound::ShimNews;
use super::kind::{ProgramKind, StartArguments};
use super::lookups::ClaudeFiles;
use super::press::Looked;
use super::probe::{ProbedClaude, WantedClaude};
use super::start::NotStarted;
use super::witness::{FileEvidence, figures_of};
use super::writing::Writing;
use crate::core::claude::reading::witness::Witness;
use crate::core::claude::reading::{self, Observer};
use crate::core::machine::{Input, KeysReach, Observation, Runs, Stroke};
use crate::core::model::{Conversation, Evidence, Person, RpcError};
use crate::core::settings::{Gate, Kind, SlotConfig};
use crate::core::terminal::{At, Frame};
use crate::shim::Hello;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// What the shim has sent by now arrives within this.
const ARRIVES: Duration = Duration::from_millis(2);
/// A frame that has begun is waited for; the shim tells of an end or a silence well within this.
const FRAME_ENDS: Duration = Duration::from_millis(300);

/// A screen that is drawn without a pause for so long does not stand still, and is not waited for: commands wait behind
/// the key.
const LOOKS_FOR: Duration = Duration::from_secs(1);

/// How long Enter waits for the length of the transcript. Without it the answer is taken from the screen.
const END_KNOWN: Duration = Duration::from_millis(500);

impl ProgramKind for Claude {
    const KIND: Kind = Kind::Claude;
    const READS_SCREEN: bool = true;
    type News = ClaudeNews;

    fn new(_: &SlotContext, _: &SlotConfig) -> Claude {
        Claude::default()
    }

    async fn next(&mut self, knows: bool) -> ClaudeNews {
        match knows {
            true => Claude::next(self).await,
            false => std::future::pending().await,
        }
    }

    async fn take_news(slot: &mut Slot<Claude>, news: ClaudeNews) {
        match news {
            ClaudeNews::Answer(answer) => slot.input(Input::Found(answer)).await,
            ClaudeNews::Witnesses => slot.ask_witnesses().await,
        }
    }

    async fn take_frames(slot: &mut Slot<Claude>, frames: Vec<Frame>, quiet: Option<At>) {
        slot.read(frames).await;
        if let Some(at) = quiet {
            slot.wait_on_screen(at).await;
        }
    }

    fn forget(&mut self) {
        Claude::forget(self);
    }

    fn last_seen(&self) -> Option<&Observation> {
        Claude::last_seen(self)
    }

    fn observe_with(&mut self, observer: Observer) {
        Claude::observe_with(self, observer);
    }

    fn news(&mut self) -> Option<Input> {
        Claude::news(self)
    }

    async fn look_again(slot: &mut Slot<Claude>) -> Looked {
        slot.look_again().await
    }

    async fn ask_witnesses(slot: &mut Slot<Claude>) {
        slot.ask_witnesses().await;
    }

    fn asks_witnesses(&self) -> bool {
        self.witnesses().are_looking()
    }

    fn witness_all(slot: &Slot<Claude>, files: &FileEvidence) -> Vec<Witness> {
        slot.witness_all(files)
    }

    fn tell_why(slot: &mut Slot<Claude>, reply: Answer<Vec<Evidence>>) {
        slot.tell_why(reply);
    }

    async fn looked_up(slot: &mut Slot<Claude>, found: ClaudeFiles) {
        match found {
            ClaudeFiles::Evidence(at, found) => slot.looked_at_files(at, found).await,
            ClaudeFiles::Why(reply, found) => drop(reply.send(Ok(slot.evidence(&found)))),
            ClaudeFiles::Hook(input, entered) => slot.take_input(*input, entered).await,
            ClaudeFiles::Claim(id, reply, found) => drop(reply.send(slot.claimed(id, found))),
        }
    }

    async fn take_input(slot: &mut Slot<Claude>, input: Box<Input>) {
        match slot.other_conversation(&input) {
            Some(conversation) => slot.look_up_hook(input, conversation).await,
            None => slot.take_input(*input, false).await,
        }
    }

    async fn write(slot: &mut Slot<Claude>, writing: Writing) -> Result<(), RpcError> {
        // A dialog may have come since the screen was last read.
        if let Some(news) = slot.look_again().await.news() {
            slot.input(news).await;
        }
        match slot.machine.keys_reach() {
            KeysReach::NoDialog => slot.write_plainly(writing).await,
            reach => slot.write_into_dialog(writing, reach).await,
        }
    }

    async fn note_acting_key(
        slot: &mut Slot<Claude>,
        strokes: &[Stroke],
        bytes: &[u8],
        person: &Person,
    ) {
        slot.note_acting_key(strokes, bytes, person).await;
    }

    async fn begin_turn(slot: &mut Slot<Claude>) {
        let place = slot.end_of_transcript().await;
        slot.own.begin_turn(place.clone());
        slot.keep_turn(place).await;
    }

    fn find_answer(slot: &mut Slot<Claude>) -> Option<Input> {
        slot.begin_search();
        None
    }

    fn wanted(slot: &Slot<Claude>) -> Option<WantedClaude> {
        let conversation = slot.wanted_conversation(slot.program.settings());
        Some(WantedClaude(conversation))
    }

    fn arguments(
        slot: &mut Slot<Claude>,
        command: &[String],
        probed: Option<ProbedClaude>,
    ) -> Result<StartArguments, NotStarted> {
        let probed = probed.ok_or_else(|| NotStarted::missing("Claude Code was not looked for"))?;
        slot.claude_arguments(command, probed)
    }

    async fn without_record(pid: u32, settings: Arc<SlotConfig>) -> Runs {
        super::adopt::without_record(pid, settings).await
    }

    async fn found_running(slot: &mut Slot<Claude>, hello: &Hello) -> Vec<Input> {
        slot.recall_claude(hello).await
    }

    fn gate(slot: &Slot<Claude>) -> &'static str {
        let settings = slot.program.settings();
        match (slot.machine.is_gated(), settings.gate) {
            // The project's own settings can change what the hook has judged.
            (true, _) if settings.project_settings => "weak",
            (true, _) => "hook",
            (false, Gate::Screen) => "screen",
            (false, _) => "ungated",
        }
    }

    fn conversation(slot: &Slot<Claude>) -> Conversation {
        slot.conversation()
    }

    fn take_over(slot: &mut Slot<Claude>, id: Uuid, reply: Answer<bool>) {
        slot.take_over(id, reply);
    }
}

impl Slot<Claude> {
    /// Reads each whole frame; what has not changed is not told again.
    async fn read(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            self.wait_on_screen(frame.at).await;
            self.see(&frame);
            self.bring_news().await;
            self.look_for_login().await;
        }
    }

    /// The one way in which a frame is taken in, also just before a key.
    fn see(&mut self, frame: &Frame) {
        self.screen.check_waiters();
        self.own.see(frame);
        self.follow_text();
    }

    /// A screen that nobody knows and that stays is a view that takes the keys.
    async fn wait_on_screen(&mut self, at: At) {
        if self.own.wait(at) {
            self.bring_news().await;
        }
    }

    async fn bring_news(&mut self) {
        if let Some(news) = self.own.news() {
            self.input(news).await;
            self.ask_witnesses().await;
        }
    }

    /// Takes in all that has come from the program, up to the end of a frame, and no longer than [`LOOKS_FOR`].
    pub(super) async fn look_again(&mut self) -> Looked {
        let enough = Instant::now() + LOOKS_FOR;
        let mut patience = ARRIVES;
        // An end is heard in its turn; no key matters any more, nor that the shim begins to end its program.
        while let Some(message) = self.link.next_within(patience).await {
            if let ShimNews::Frames(frames, quiet) = self.take_in(Ok(message)) {
                frames.iter().for_each(|frame| self.see(frame));
                quiet.map(|at| self.own.wait(at));
            }
            if Instant::now() > enough {
                self.screen.check_waiters();
                return Looked::Moving(self.own.news());
            }
            patience = match self.screen.terminal().is_drawing() {
                true => FRAME_ENDS,
                false => ARRIVES,
            };
        }
        if let Some(frame) = self.screen.check_rows() {
            self.see(&frame);
        }
        self.screen.check_waiters();
        Looked::Still(self.own.news())
    }

    fn begin_search(&mut self) {
        let place = self.own.answer_place(self.transcript());
        let screen = self.screen.terminal().screen();
        let message = self.machine.typed_last();
        let on_screen = message.and_then(|message| reading::answer_to(&screen, message));
        let failed = self.machine.turn_failed();
        let (worker, transcript) = (self.lookups.conversations().clone(), self.transcript());
        self.own.search(Box::pin(async move {
            let answer = answer::find(place, on_screen, failed, &worker).await;
            let figures = worker.run(move || figures_of(&transcript?)).await;
            (answer, figures.ok().flatten())
        }));
    }

    /// Where the turn begins that Enter begins: the key is not pressed before that is known, or can't be.
    async fn end_of_transcript(&mut self) -> Option<TurnPlace> {
        let transcript = self.transcript()?;
        let path = transcript.clone();
        let length = self.lookups.conversations().run(move || {
            let found = std::fs::metadata(path);
            found.map_or(0, |found| found.len())
        });
        let offset = tokio::time::timeout(END_KNOWN, length).await;
        Some(TurnPlace {
            transcript,
            offset: offset.ok().and_then(Result::ok),
        })
    }
}
