//! Starting the program of a slot in a shim of its own, and finding a shim that runs already.

use super::Slot;
use super::catch_up::Questions;
use super::claude::Claude;
use super::context::SlotContext;
use super::conversation::KeptConversation;
use super::conversation_locks::ConversationLock;
use super::health::HealthCheck;
use super::journal::cap_of;
use super::kind::{ProgramKind, StartArguments};
use super::probe::{self, Probed, ProbedClaude};
use super::removed::Launched;
use crate::core::claude::Version;
use crate::core::machine::{Cause, Input, Runs};
use crate::core::model::EventKind;
use crate::core::settings::{Gate, SlotConfig};
use crate::launch::rehearsed;
use crate::launch::{self, SessionStart};
use crate::os::pause::{self, Moment};
use crate::os::process_stat::Stat;
use crate::os::{blocking, cgroup, files, headroom};
use crate::shim::{Hello, LaunchError, ShimKeeper, ShimLink, ShimSpec};
use chrono::Utc;
use serde_json::Value;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Why a program was not started.
pub(crate) struct NotStarted {
    reason: String,
    cause: Cause,
}

impl NotStarted {
    pub(super) fn new(cause: Cause, reason: impl ToString) -> NotStarted {
        NotStarted {
            reason: reason.to_string(),
            cause,
        }
    }

    pub(super) fn missing(reason: impl ToString) -> NotStarted {
        NotStarted::new(Cause::MissingProgram, reason)
    }
}

impl From<NotStarted> for Input {
    fn from(NotStarted { reason, cause }: NotStarted) -> Input {
        Input::NotStarted { reason, cause }
    }
}

impl From<LaunchError> for NotStarted {
    fn from(error: LaunchError) -> NotStarted {
        let cause = match error {
            LaunchError::Refused(_) | LaunchError::Protocol { .. } => Cause::BadSettings,
            _ => Cause::Failed,
        };
        NotStarted::new(cause, error)
    }
}

/// How long a look for a shim may take.
const LOOKING: Duration = Duration::from_secs(5);

/// A program on its way into a shim.
struct ProgramStart {
    spec: ShimSpec,
    more: StartArguments,
}

impl<K: ProgramKind> Slot<K> {
    /// Begins to start the program with the settings as they are now. [`Slot::probed`] goes on once the probe is done.
    pub(super) async fn spawn(&mut self) -> Vec<Input> {
        self.runs_with(self.machine.config().clone());
        if self.program.settings().kind != K::KIND {
            self.program.wait_for_kind();
            return Vec::new();
        }
        self.log.keep(&self.program.settings().supervision);
        match self.take_up_left_over().await {
            Ok(Some(inputs)) => inputs,
            Ok(None) => {
                let env = self.slot_environment();
                let wanted = K::wanted(self);
                let config = self.program.settings().clone();
                let probe = probe::probe(config, self.context.clone(), env, wanted);
                self.program.begin_probe(Box::pin(probe));
                let rules = self.rules.begin().map(Input::Rules);
                [Input::ShimGone].into_iter().chain(rules).collect()
            }
            Err(reason) => vec![Input::NotReached(reason)],
        }
    }

    /// A program that an earlier daemon left may have been found by nobody: its shim was slow to answer. It is
    /// taken up, since no second one may run beside it. Says why it is not, if its shim lives.
    async fn take_up_left_over(&mut self) -> Result<Option<Vec<Input>>, String> {
        if self.own.starts_once() {
            return Ok(None);
        }
        if let Some(stopped) = self.stopped_shim().await {
            return Err(format!(
                "its program runs in a shim that was stopped by a signal and does not answer: \
                 SIGCONT to the shim (pid {stopped}) lets it go on"
            ));
        }
        match self.find_shim().await {
            Ok(found) if found.1.exit.is_none() => Ok(Some(self.take_up(found).await)),
            Err(LaunchError::Timeout(_)) => {
                let name = &self.program.settings().name;
                Err(format!(
                    "its program runs in a shim that does not answer; to end both: missiond stop {name}"
                ))
            }
            Err(error @ (LaunchError::Unreached { .. } | LaunchError::Unclear(_))) => {
                Err(error.to_string())
            }
            _ => Ok(None),
        }
    }

    /// The shim of the slot, if it lives and a signal has stopped it: nobody has to wait for its answer.
    async fn stopped_shim(&mut self) -> Option<u32> {
        let (context, slot) = (self.context.clone(), self.program.settings().name.clone());
        let shim = blocking::run_within(LOOKING, move || context.shim(&slot)).await;
        let pid = shim.ok()?.ok()??.pid();
        Stat::of(pid).filter(Stat::is_stopped).map(|_| pid)
    }

    /// Starts the program, now that all is known for it.
    pub(super) async fn probed(&mut self, probed: Result<Probed, NotStarted>) {
        let started = match probed.and_then(|probed| self.prepare(probed)) {
            Ok(start) => self.launch(start).await,
            Err(not_started) => Err(not_started),
        };
        for input in started.unwrap_or_else(|not_started| vec![not_started.into()]) {
            self.input(input).await;
        }
    }

    async fn launch(&mut self, start: ProgramStart) -> Result<Vec<Input>, NotStarted> {
        self.check_headroom(&start.spec)?;
        self.write_settings().await?;
        pause::at(Moment::BeforeStart).await;
        // Nothing can be left of a program before the first.
        if !self.own.starts_once() {
            self.end_orphans_before_start().await.map_err(|error| {
                let reason =
                    format!("what an earlier program may have left can't be ended: {error}");
                NotStarted::new(Cause::Failed, reason)
            })?;
        }
        let claim = self.claim_alone(start.more.session, start.more.conversation)?;
        let (link, hello) = launch_shim(&self.context, &start.spec).await?;
        self.forget_program();
        self.memory
            .change_if(|memory| memory.own_size.take().is_some());
        self.connected(link, &hello);
        self.program.hold(claim);
        let seen = self.catch_up(&hello, Questions::Open).await;
        let resumed = matches!(start.more.session, Some(SessionStart::Resume(_)));
        let session_id = self.enter_session(start.more.session);
        self.tell(EventKind::Spawned {
            pid: hello.child_pid,
            session_id,
            resumed,
        });
        let started = Input::Started {
            pid: hello.child_pid,
            continues: resumed,
        };
        // The settings may have changed since this start began.
        let settings = Input::RunsWith(Runs::with(self.program.settings().clone()));
        let strange = (!start.more.known).then_some(Input::Unrehearsed);
        self.note_start(hello.child_pid, start.more.known);
        let inputs = [Some(started), Some(settings), strange, K::first_sight()]
            .into_iter()
            .flatten();
        Ok(inputs.chain(seen).collect())
    }

    /// Claude Code reads them at its start.
    async fn write_settings(&mut self) -> Result<(), NotStarted> {
        let Some(text) = self.memory.settings.clone() else {
            return Ok(());
        };
        let file = self.context.settings_file(&self.program.settings().name);
        let shown = file.display().to_string();
        let save = move || files::save(&file, &text);
        let saved = self.memory.disk().run(save).await.flatten();
        saved.map_err(|error| NotStarted::new(Cause::Failed, format!("{shown}: {error}")))
    }

    fn check_headroom(&self, spec: &ShimSpec) -> Result<(), NotStarted> {
        let needed = headroom::need(spec.cols, spec.rows, self.screen.output().room());
        let lacks = |cause| {
            move |shortage: headroom::Shortage| {
                NotStarted::new(cause, format!("{shortage}: {}", shortage.next))
            }
        };
        headroom::check(needed).map_err(lacks(Cause::OutOfMemory))?;
        headroom::check_files().map_err(lacks(Cause::Failed))
    }

    /// A daemon that takes the program over later has no version to go by, and maybe no settings.
    fn note_start(&mut self, pid: u32, known: bool) {
        let strange = (!known).then_some(pid);
        let launched = Some(Launched::new(
            pid,
            self.program.started_at(),
            self.program.settings(),
        ));
        if (self.memory.unrehearsed, &self.memory.launched) != (strange, &launched) {
            self.memory.change(|memory| {
                (memory.unrehearsed, memory.launched) = (strange, launched);
            });
        }
    }

    pub(super) fn connected(&mut self, link: ShimLink, hello: &Hello) {
        self.link.connect(link, hello);
        self.context
            .shims
            .joined(&self.program.settings().name, hello.shim_pid);
        if !self.machine.has_program() {
            self.program.was_started(Utc::now());
            self.link.begin_anew();
        }
        self.program.last_end_mut().runs_again();
        self.health = HealthCheck::new(Instant::now());
    }

    fn enter_session(&mut self, session: Option<SessionStart>) -> Option<String> {
        let id = session?.id();
        if self
            .memory
            .session()
            .is_some_and(|session| session.id != id)
        {
            self.machine.begins_elsewhere();
        }
        self.memory.change_if(|memory| {
            // Another one may have been taken over meanwhile.
            let adopted = memory.adopted.take_if(|adopted| *adopted == id);
            memory.enter(id, None) || adopted.is_some()
        });
        Some(id.to_string())
    }

    pub(super) fn slot_environment(&self) -> Vec<(String, String)> {
        launch::environment(
            self.program.settings(),
            &self.context.socket,
            self.context.environment.iter().cloned(),
        )
    }

    /// Two programs on one conversation would write over each other's words.
    fn claim_alone(
        &self,
        session: Option<SessionStart>,
        kept: Option<KeptConversation>,
    ) -> Result<Option<ConversationLock>, NotStarted> {
        let Some(id) = session.map(|session| session.id()) else {
            return Ok(None);
        };
        let taken = |by: String| {
            let reason = format!("its conversation is open in {by}");
            NotStarted::new(Cause::SessionInUse, reason)
        };
        let claim = self
            .context
            .across
            .conversation_locks
            .take(id, &self.program.settings().name);
        let claim = claim.map_err(|slot| taken(format!("slot {slot}")))?;
        match kept.and_then(|kept| kept.holder_of(id)) {
            Some(pid) => Err(taken(format!("another Claude Code: pid {pid}"))),
            None => Ok(Some(claim)),
        }
    }

    /// The program has this conversation open; one that another slot has stays with that.
    pub(super) fn hold(&mut self, id: Uuid) {
        if !self.program.holds(id)
            && let Ok(claim) = self
                .context
                .across
                .conversation_locks
                .take(id, &self.program.settings().name)
        {
            self.program.hold(Some(claim));
        }
    }

    /// What the program is started with. Everything that can be found wrong before the spawn is found by now.
    fn prepare(&mut self, probed: Probed) -> Result<ProgramStart, NotStarted> {
        let config = self.program.settings().clone();
        let program = probed.program.display().to_string();
        check_limits(&config)?;
        let mut argv = vec![program];
        argv.extend(config.command[1..].iter().cloned());
        let more = K::arguments(self, &argv, probed.claude)?;
        argv.extend(more.args.iter().cloned());
        let spec = ShimSpec {
            slot: config.name.clone(),
            argv,
            cwd: config.cwd.clone(),
            env: probed.env,
            cols: config.cols,
            rows: config.rows,
            recording: self.log.paths().recording.clone(),
            socket: self
                .context
                .shim_socket(&config.name)
                .map_err(|error| NotStarted::new(Cause::BadSettings, error))?,
            limits: config.supervision.limits,
            cgroup: cgroup::place(&self.context.socket, &config.name),
            keeper: ShimKeeper {
                home: self.context.state.clone(),
                config: self.context.config.clone(),
            },
            cap: Some(cap_of(&config.supervision)),
        };
        Ok(ProgramStart { spec, more })
    }
}

impl Slot<Claude> {
    pub(super) fn claude_arguments(
        &mut self,
        command: &[String],
        probed: ProbedClaude,
    ) -> Result<StartArguments, NotStarted> {
        let config = self.program.settings().clone();
        if let Err(reason) = &probed.version {
            let program = &command[0];
            self.warn(&format!("the version of {program} is unknown: {reason}"));
        }
        // A version that can't be told is taken for the newest.
        let version = probed.version.ok();
        check_version(config.supervision.version, version)?;
        let known = self.knows_screens(version, command);
        let start = self.session_to_start(&config, probed.conversation);
        let settings = self.make_settings(&config, version, probed.status_line);
        Ok(StartArguments {
            args: launch::claude_args(&config, start, &settings, version),
            session: Some(start),
            conversation: probed.conversation,
            known,
        })
    }

    /// Whether the screens of this program were tried; a person is told where they were not.
    fn knows_screens(&mut self, version: Option<Version>, command: &[String]) -> bool {
        let state = self.context.env.state_dir().unwrap_or_default();
        let known = version
            .is_some_and(|version| rehearsed::acquaintance(&state, version, command).is_known());
        if !known {
            let version = version.map_or("of no known version".to_owned(), |v| v.to_string());
            self.warn(&format!(
                "Claude Code {version} has not passed a rehearsal: nothing is allowed by its screen alone, while hooks \
                 hold as ever; to change that: {}, then missiond restart {}",
                rehearsed::how_to(command),
                self.program.settings().name
            ));
        }
        known
    }

    /// The settings and the file that they go to.
    fn make_settings(
        &mut self,
        config: &SlotConfig,
        version: Option<Version>,
        status_line: Option<Value>,
    ) -> PathBuf {
        let file = self.context.settings_file(&config.name);
        let hook = self.context.hook_command(&config.name);
        let mut rules = self.rules.for_settings();
        if config.gate == Gate::Screen {
            // Nobody would judge what Claude Code does not ask about.
            rules.allow.clear();
        }
        let mut settings = launch::settings_json(&hook, &rules, &config.mode, version);
        self.rules.shares(launch::rules_of(&settings));
        if config.supervision.counts_cost() {
            settings = launch::with_status_line(settings, &hook, status_line);
        }
        self.memory.set_settings(Some(settings.to_string()));
        file
    }
}

/// The shim is known to have been there from before its start, however early it is killed.
async fn launch_shim(
    context: &SlotContext,
    spec: &ShimSpec,
) -> Result<(ShimLink, Hello), LaunchError> {
    context.shims.begins(&spec.slot);
    let launched = ShimLink::launch(spec, &context.program).await;
    let nothing_began = matches!(
        launched,
        Err(LaunchError::Refused(_) | LaunchError::NotNow(_) | LaunchError::Spawn { .. })
    );
    if nothing_began {
        context.shims.never_began(&spec.slot);
    }
    launched
}

fn check_limits(config: &SlotConfig) -> Result<(), NotStarted> {
    let is_root = rustix::process::geteuid().is_root();
    let fault = config.supervision.limits.fault(is_root);
    fault.map_or(Ok(()), |why| Err(NotStarted::new(Cause::BadSettings, why)))
}

/// A slot that names a version runs no other, and none that can't be told.
fn check_version(wanted: Option<Version>, found: Option<Version>) -> Result<(), NotStarted> {
    let Some(wanted) = wanted.filter(|wanted| found != Some(*wanted)) else {
        return Ok(());
    };
    let found = found.map_or("an unknown version".to_owned(), |found| found.to_string());
    let reason = format!(
        "Claude Code is {found} and the slot takes only {wanted}: install that, or change `version`"
    );
    Err(NotStarted::new(Cause::WrongVersion, reason))
}
