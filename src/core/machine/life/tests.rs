//! The life of a slot, driven at random with a manual clock.

use super::super::tests::config;
use super::*;
use crate::core::model::ExitReport;
use crate::core::settings::{OnLimit, OnStall, Supervision};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::collections::BTreeSet;

/// What may happen to a slot. Impossible events are skipped.
#[derive(Debug, Clone)]
enum Op {
    Start,
    Stop,
    Restart,
    Spawns,
    DoesNotSpawn(Cause),
    Ends(Option<i32>, Option<i32>),
    IsIdle,
    Stalls,
    IsLimited(u64),
    Passes(u64),
    /// Exactly as long as the machine wants.
    PassesUntilDue,
}

fn op() -> impl Strategy<Value = Op> {
    let cause = prop_oneof![
        Just(Cause::Failed),
        Just(Cause::MissingProgram),
        Just(Cause::WrongVersion)
    ];
    prop_oneof![
        2 => Just(Op::Start),
        1 => Just(Op::Stop),
        1 => Just(Op::Restart),
        6 => Just(Op::Spawns),
        1 => cause.prop_map(Op::DoesNotSpawn),
        4 => prop_oneof![
            Just((Some(0), None)),
            Just((Some(1), None)),
            Just((None, Some(9))),
            Just((None, None))
        ].prop_map(|(code, signal)| Op::Ends(code, signal)),
        3 => Just(Op::IsIdle),
        1 => Just(Op::Stalls),
        1 => (0u64..7200).prop_map(Op::IsLimited),
        2 => (0u64..1_000_000).prop_map(Op::Passes),
        6 => Just(Op::PassesUntilDue),
    ]
}

fn settings() -> impl Strategy<Value = SlotConfig> {
    let restart = prop_oneof![
        Just(Restart::Always),
        Just(Restart::OnFailure),
        Just(Restart::Never)
    ];
    let stall = prop_oneof![Just(OnStall::Report), Just(OnStall::Restart)];
    let limit = prop_oneof![Just(OnLimit::Wait), Just(OnLimit::Stop)];
    (restart, stall, limit, 1u16..8).prop_map(|(restart, on_stall, on_limit, tries)| SlotConfig {
        restart,
        supervision: Supervision {
            on_stall,
            on_limit,
            restart_tries: tries,
            ..Supervision::default()
        },
        ..config()
    })
}

/// The environment of the machine, and its invariants.
struct World {
    machine: Machine,
    now: Instant,
    /// `Effect::Spawn` was sent and not answered.
    spawning: bool,
    running: bool,
    /// A person's last request was stop.
    stopped: bool,
    gave_up: bool,
    /// The account's limit allows longer waits than the pace.
    limited: bool,
    last_token: Token,
    answered: BTreeSet<Token>,
}

impl World {
    fn new(config: SlotConfig) -> World {
        World {
            machine: Machine::new(Arc::new(config), KnownRules::default(), 7),
            now: Instant::now(),
            spawning: false,
            running: false,
            stopped: false,
            gave_up: false,
            limited: false,
            last_token: 0,
            answered: BTreeSet::new(),
        }
    }

    fn token(&mut self) -> Token {
        self.last_token += 1;
        self.last_token
    }

    fn put(&mut self, input: Input) {
        for effect in self.machine.handle(input, self.now) {
            match effect {
                Effect::Spawn => self.spawn(),
                Effect::CancelSpawn => {
                    assert!(self.spawning, "no start is under way");
                    self.spawning = false;
                }
                Effect::Reply(token, _) => {
                    assert!(
                        self.answered.insert(token),
                        "token {token} was answered twice"
                    );
                }
                Effect::StopTree => assert!(self.running, "nothing runs that could be stopped"),
                Effect::EndOrphans => assert!(!self.running, "what runs is no orphan"),
                Effect::Tell(EventKind::GaveUp { .. }) => self.gave_up = true,
                Effect::Tell(EventKind::Restart { delay_ms, .. }) if !self.limited => {
                    let most = Duration::from_secs(60).mul_f64(1.1).as_millis() as u64;
                    assert!(
                        (1000..=most).contains(&delay_ms),
                        "a delay of {delay_ms} ms"
                    );
                }
                _ => {}
            }
        }
        self.check();
    }

    fn spawn(&mut self) {
        assert!(!self.spawning && !self.running, "a second program at once");
        assert!(!self.stopped, "a start against a person's stop");
        assert!(!self.gave_up, "a start after giving up");
        self.spawning = true;
    }

    fn check(&self) {
        let down = matches!(self.machine.state(), State::Exited | State::Error);
        if self.spawning || (self.running && self.machine.is_up()) {
            assert!(!down || self.machine.is_up(), "it is not down");
        }
        if let (Life::Waiting { until, .. }, false) = (&self.machine.life, self.limited) {
            assert!(*until - self.now <= Duration::from_secs(66));
        }
    }

    fn person(&mut self, starts: bool, input: fn(Token) -> Input) {
        self.stopped = !starts;
        if starts {
            self.gave_up = false;
        }
        let token = self.token();
        self.put(input(token));
    }

    fn does(&mut self, op: Op) {
        match op {
            Op::Start => self.person(true, Input::Start),
            Op::Restart => self.person(true, Input::Restart),
            Op::Stop => self.person(false, Input::Stop),
            Op::Spawns if self.spawning => {
                (self.spawning, self.running) = (false, true);
                self.put(Input::Started {
                    pid: 42,
                    continues: true,
                });
            }
            Op::DoesNotSpawn(cause) if self.spawning => {
                self.spawning = false;
                let reason = "as the test says".to_owned();
                self.put(Input::NotStarted { reason, cause });
            }
            Op::Ends(code, signal) if self.running => {
                self.running = false;
                let report = ExitReport { code, signal };
                self.put(Input::Ended(ProgramEnd {
                    report,
                    said: None,
                    limit_reset: None,
                }));
            }
            Op::IsIdle if self.running => self.put(crate::core::machine::tests::idle()),
            Op::Stalls => self.put(Input::Measured(Measure {
                memory: None,
                quiet_for: Duration::from_secs(3600),
            })),
            Op::IsLimited(seconds) if self.running => {
                self.limited = true;
                let until = Some(self.now + Duration::from_secs(seconds));
                let text = "You've hit your session limit".to_owned();
                self.put(Input::Limited { text, until });
            }
            Op::Passes(ms) => {
                self.now += Duration::from_millis(ms);
                self.put(Input::TimePassed);
            }
            Op::PassesUntilDue => self.pass_until_due(),
            _ => {}
        }
    }

    /// Everything due is done then: the same instant must not be due again.
    fn pass_until_due(&mut self) {
        let Some(due) = self.machine.poll_timeout() else {
            return;
        };
        self.now = self.now.max(due);
        self.put(Input::TimePassed);
        if let Some(next) = self.machine.poll_timeout() {
            assert!(next > self.now, "it would wake up for ever");
        }
    }

    /// In every state a stop ends the program, and every request gets a reply.
    fn ends_by_a_stop(mut self) {
        self.does(Op::Stop);
        self.does(Op::Spawns);
        self.does(Op::Ends(Some(143), None));
        assert!(self.machine.is_gone());
        self.does(Op::Passes(100_000_000));
        assert!(!self.spawning && self.machine.poll_timeout().is_none());
        let everybody: BTreeSet<Token> = (1..=self.last_token).collect();
        assert_eq!(self.answered, everybody, "everybody gets an answer");
    }
}

/// Set it to repeat a run.
const SEED: &str = "MISSIOND_TEST_SEED";

fn seed() -> [u8; 32] {
    let seed = std::env::var(SEED).unwrap_or_else(|_| uuid::Uuid::new_v4().simple().to_string());
    println!("{SEED}={seed}");
    let mut bytes = [0; 32];
    for (to, from) in bytes.iter_mut().zip(seed.bytes()) {
        *to = from;
    }
    bytes
}

#[test]
fn no_sequence_of_events_starts_two_programs_or_one_against_a_persons_will() {
    let config = Config {
        cases: 2000,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed());
    let mut runner = TestRunner::new_with_rng(config, rng);
    let cases = (settings(), proptest::collection::vec(op(), 0..60));
    let outcome = runner.run(&cases, |(settings, ops)| {
        let mut world = World::new(settings);
        for op in ops {
            world.does(op);
        }
        world.ends_by_a_stop();
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

fn up() -> World {
    let mut world = World::new(config());
    world.does(Op::Start);
    world.does(Op::Spawns);
    world
}

fn end(world: &mut World, said: &str, limit_reset: Option<Instant>) -> Vec<Effect> {
    let input = Input::Ended(ProgramEnd {
        report: ExitReport {
            code: Some(1),
            signal: None,
        },
        said: Some(said.to_owned()),
        limit_reset,
    });
    world.running = false;
    world.machine.handle(input, world.now)
}

#[test]
fn a_conversation_that_is_gone_is_forgotten_once() {
    let mut world = up();
    let effects = end(&mut world, "No conversation found with session ID: 1", None);
    assert!(effects.contains(&Effect::ForgetConversation));
    assert_eq!(world.machine.cause(), Some("unknown conversation"));
    world.does(Op::PassesUntilDue);
    assert!(world.spawning, "a fresh one is started");
}

#[test]
fn what_a_restart_can_not_cure_is_not_tried_again() {
    for said in [
        "Not logged in",
        "error: unknown option '--x'",
        "Session ID 1 is already in use.",
    ] {
        let mut world = up();
        end(&mut world, said, None);
        assert_eq!(world.machine.state(), State::Error, "{said}");
        assert_eq!(world.machine.poll_timeout(), None, "{said}");
    }
}

/// Ends at the usage limit, which is reset in an hour.
fn limited(on_limit: OnLimit) -> (World, Vec<Effect>, Instant) {
    let mut world = World::new(SlotConfig {
        supervision: Supervision {
            on_limit,
            ..Supervision::default()
        },
        ..config()
    });
    world.does(Op::Start);
    world.does(Op::Spawns);
    world.limited = true;
    let limit_reset = world.now + Duration::from_secs(3600);
    let text = "You've hit your session limit · resets 3pm";
    let effects = end(&mut world, text, Some(limit_reset));
    let trouble = Effect::Tell(EventKind::Trouble {
        cause: "usage limit".to_owned(),
        text: format!("exit 1: {text}"),
    });
    assert!(effects.contains(&trouble), "{effects:?}");
    (world, effects, limit_reset)
}

#[test]
fn a_usage_limit_is_waited_for_before_the_next_start() {
    let (mut world, effects, limit_reset) = limited(OnLimit::Wait);
    let restart = Effect::Tell(EventKind::Restart {
        attempt: 1,
        delay_ms: 3_600_000,
    });
    assert!(effects.contains(&restart), "{effects:?}");
    assert_eq!(world.machine.poll_timeout(), Some(limit_reset));
    let doing = world.machine.doing(world.now).unwrap_or_default();
    assert!(doing.ends_with("; restart 1 in 1h"), "{doing}");
    world.does(Op::PassesUntilDue);
    assert!(world.spawning);
}

#[test]
fn a_usage_limit_keeps_a_slot_down_where_that_is_set() {
    let (world, effects, _) = limited(OnLimit::Stop);
    assert_eq!(world.machine.state(), State::Exited);
    assert_eq!(world.machine.poll_timeout(), None);
    assert_eq!(world.machine.restarts(), 0);
    let restarts = |effect: &Effect| matches!(effect, Effect::Tell(EventKind::Restart { .. }));
    assert!(!effects.iter().any(restarts), "{effects:?}");
}

#[test]
fn a_persons_start_does_not_wait_for_the_usage_limit() {
    let (mut world, ..) = limited(OnLimit::Wait);
    for op in [Op::Start, Op::Spawns, Op::IsIdle] {
        world.does(op);
    }
    assert!(presses(&world.machine.handle(message(), world.now)));
}

/// The screen of a resumed conversation may be from another day.
#[test]
fn an_old_usage_limit_holds_nothing_back() {
    let mut world = idle_with(Supervision::default());
    let text = "You've hit your session limit · resets 3pm";
    let mut sees = |state| {
        let sight = Observation {
            last_error: (state == State::Idle).then(|| text.to_owned()),
            ..crate::core::machine::tests::screen(state, "")
        };
        let effects = world.machine.handle(Input::Saw(sight), world.now);
        effects.contains(&Effect::FindReset(text.to_owned()))
    };
    assert!(!sees(State::Idle));
    assert!(!sees(State::Thinking));
    assert!(sees(State::Idle), "this one is new");
}

fn idle_with(supervision: Supervision) -> World {
    let mut world = World::new(SlotConfig {
        supervision,
        ..config()
    });
    for op in [Op::Start, Op::Spawns, Op::IsIdle] {
        world.does(op);
    }
    world
}

#[test]
fn a_slot_that_has_nothing_to_do_is_stopped_when_that_is_set() {
    let idle_stop = Some(Duration::from_secs(300));
    let mut world = idle_with(Supervision {
        idle_stop,
        ..Supervision::default()
    });
    let due = world.machine.poll_timeout();
    assert_eq!(due, Some(world.now + Duration::from_secs(300)));
    world.does(Op::PassesUntilDue);
    assert!(!world.machine.is_up());
    world.does(Op::Ends(Some(143), None));
    assert_eq!(world.machine.state(), State::Exited);
    let reason = world.machine.last_error().unwrap_or_default();
    assert_eq!(reason, "idle_stop: idle for 5m");
    assert_eq!(world.machine.poll_timeout(), None);
}

#[test]
fn messages_wait_until_the_usage_limit_is_lifted() {
    let mut world = idle_with(Supervision::default());
    world.does(Op::IsLimited(3600));
    let limit_reset = world.now + Duration::from_secs(3600);
    assert!(!presses(&world.machine.handle(message(), world.now)));
    let doing = world.machine.doing(world.now).unwrap_or_default();
    assert_eq!(
        doing,
        "1 queued message, until the usage limit is reset in 1h"
    );
    assert_eq!(world.machine.poll_timeout(), Some(limit_reset));
    assert!(presses(
        &world.machine.handle(Input::TimePassed, limit_reset)
    ));
}

fn message() -> Input {
    Input::Send(Message {
        token: Some(9),
        text: "hello".into(),
        slash: false,
        wait: true,
        task: None,
        id: None,
        person: None,
    })
}

fn presses(effects: &[Effect]) -> bool {
    let press = |effect: &Effect| matches!(effect, Effect::Press { .. });
    effects.iter().any(press)
}
