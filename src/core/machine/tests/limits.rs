//! The limits of a slot, and what happens when one is exceeded.

use super::*;
use crate::core::settings::{OnLimit, OnStall};
use crate::core::text::dollars::Dollars;

fn with_supervision(supervision: Supervision) -> SlotConfig {
    SlotConfig {
        supervision,
        ..config()
    }
}

/// A slot that works on a message.
fn at_work(supervision: Supervision) -> Bench {
    let mut bench = Bench::idle_with(with_supervision(supervision));
    bench.take("hello", 2);
    bench.see(screen(State::Thinking, ""));
    bench.keys.clear();
    bench
}

impl Bench {
    fn take(&mut self, text: &str, token: Token) {
        self.send(token, text);
        self.arrives(text);
        self.hear(100 + token, HookWhat::PromptTaken);
    }

    /// The turn ends with an answer.
    fn answer(&mut self) {
        self.see(screen(State::Idle, ""));
        self.find("done");
    }

    fn measure(&mut self, memory: u64, quiet_for: u64) {
        self.put(Input::Measured(Measure {
            memory: Some(memory),
            quiet_for: Duration::from_secs(quiet_for),
        }));
    }

    fn end(&mut self, code: i32) {
        let report = ExitReport {
            code: Some(code),
            signal: None,
        };
        self.put(Input::Ended(ProgramEnd {
            report,
            said: None,
            limit_reset: None,
        }));
    }

    /// What was told of the cost: by how much it has grown, and what it is.
    fn costs(&self) -> Vec<(f64, f64)> {
        let told = self.told.iter();
        told.filter_map(|what| match what {
            EventKind::Cost { dollars, total } => Some((*dollars, *total)),
            _ => None,
        })
        .collect()
    }

    fn troubles(&self) -> Vec<&str> {
        let told = self.told.iter();
        told.filter_map(|what| match what {
            EventKind::Trouble { cause, .. } => Some(cause.as_str()),
            _ => None,
        })
        .collect()
    }
}

fn dollars(amount: f64) -> Dollars {
    Dollars::from_f64(amount).unwrap()
}

fn stalling(on_stall: OnStall) -> Bench {
    let mut bench = at_work(Supervision {
        on_stall,
        ..Supervision::default()
    });
    bench.measure(1, 599);
    assert_eq!(bench.troubles(), [""; 0]);
    bench.measure(1, 600);
    bench.measure(1, 630);
    assert_eq!(bench.troubles(), ["stalled"], "told once");
    bench
}

#[test]
fn a_stall_is_only_reported_where_that_is_set() {
    let bench = stalling(OnStall::Report);
    assert_eq!(bench.keys, [""; 0]);
    assert!(bench.machine.doing(bench.now).unwrap().contains("10m 30s"));
    assert!(!bench.has(&Effect::StopTree));
}

#[test]
fn a_stall_is_over_when_the_turn_is_and_the_next_one_is_told_of_again() {
    let mut bench = stalling(OnStall::Report);
    bench.answer();
    assert_eq!(bench.machine.doing(bench.now), None);
    bench.take("again", 3);
    bench.see(screen(State::Thinking, ""));
    bench.measure(1, 600);
    assert_eq!(bench.troubles(), ["stalled", "stalled"]);
}

#[test]
fn a_stall_is_interrupted_with_one_key() {
    let mut bench = stalling(OnStall::Interrupt);
    assert_eq!(bench.keys, ["Esc"]);
    bench.see(screen(State::Idle, ""));
    bench.pass(IDLE_IS_OVER);
    assert!(bench.has(&Effect::FindAnswer));
}

#[test]
fn a_stall_at_a_dialog_gets_no_key() {
    let mut bench = at_work(Supervision {
        on_stall: OnStall::Interrupt,
        ..Supervision::default()
    });
    bench.settled(dialog("d1", "git push"));
    bench.measure(1, 10_000);
    assert_eq!((bench.keys.len(), bench.troubles().len()), (0, 0));
}

#[test]
fn a_stall_that_restarts_counts_as_a_failure() {
    let mut bench = stalling(OnStall::Restart);
    assert!(bench.has(&Effect::StopTree));
    assert_eq!(bench.fault(2), Some(Fault::Failed), "its sender is told");
    bench.end(143);
    let said = bench.told.iter().find_map(|what| match what {
        EventKind::Exit { cause, .. } => Some(cause.as_str()),
        _ => None,
    });
    assert_eq!(said, Some("ended by missiond: exit 143"));
    assert_eq!(bench.machine.cause(), Some("stalled"));
    assert!(bench.machine.poll_timeout().is_some(), "it starts again");
}

#[test]
fn the_last_turn_that_is_allowed_is_answered_and_ends_the_slot() {
    let mut bench = Bench::idle_with(with_supervision(Supervision {
        max_turns: Some(2),
        ..Supervision::default()
    }));
    for token in [2, 3] {
        assert!(bench.machine.is_up());
        bench.take("hello", token);
        bench.answer();
        assert!(matches!(bench.replies[&token], Ok(Reply::Answered { .. })));
    }
    assert!(bench.has(&Effect::StopTree));
    assert_eq!(bench.troubles(), ["max_turns"]);
    bench.end(0);
    assert_eq!(bench.machine.poll_timeout(), None, "it stays down");
    let why = bench.machine.last_error().unwrap();
    assert!(why.contains("max_turns: 2 turns"), "{why}");
    bench.put(Input::Start(9));
    assert!(bench.has(&Effect::Spawn), "a person may start it again");
    assert_eq!(bench.machine.past().turns, 0);
}

#[test]
fn the_cost_is_what_the_figure_grows_by_in_all_runs() {
    let mut bench = Bench::idle_with(with_supervision(Supervision {
        max_cost: Some(dollars(1.0)),
        ..Supervision::default()
    }));
    let figure = |bench: &mut Bench, amount: f64| {
        let token = 1000 + (amount * 1000.0) as u64 + bench.replies.len() as u64 * 10_000;
        bench.hear(token, HookWhat::Cost(dollars(amount)));
    };
    // A resumed conversation begins with its earlier cost.
    figure(&mut bench, 7.0);
    figure(&mut bench, 7.25);
    // After /clear the count begins at zero.
    figure(&mut bench, 0.25);
    assert_eq!(bench.machine.past().cost, dollars(0.5));
    assert_eq!(bench.costs(), [(0.25, 0.25), (0.25, 0.5)]);
    bench.end(1);
    let due = bench.machine.poll_timeout().unwrap();
    bench.pass(due - bench.now);
    bench.put(Input::Started {
        pid: 43,
        continues: true,
    });
    // After a crash it begins with the last recorded figure, or with zero.
    figure(&mut bench, 0.0);
    figure(&mut bench, 0.49);
    assert_eq!(bench.troubles(), [""; 0]);
    figure(&mut bench, 0.5);
    assert_eq!(bench.troubles(), ["max_cost"]);
    assert!(bench.has(&Effect::StopTree));
    bench.end(143);
    let why = bench.machine.last_error().unwrap();
    assert_eq!(why, "max_cost: $1.00 spent, $1.00 allowed");
    assert_eq!(bench.machine.poll_timeout(), None);
}

/// A daemon that was down when a run began has not heard its first figure: what the first message has cost counts.
#[test]
fn a_cost_counts_though_the_first_figure_of_its_run_was_not_heard() {
    let begins = |bench: &mut Bench, continues| {
        bench.end(1);
        let due = bench.machine.poll_timeout().unwrap();
        bench.pass(due - bench.now);
        bench.put(Input::Started { pid: 43, continues });
        bench.see(screen(State::Idle, ""));
    };
    let cost = |bench: &Bench| bench.machine.past().cost;
    let most = Some(dollars(100.0));
    let mut bench = Bench::idle_with(with_supervision(Supervision {
        max_cost: most,
        ..Supervision::default()
    }));
    bench.hear(20, HookWhat::PromptTaken);
    bench.hear(21, HookWhat::Cost(dollars(2.0)));
    assert_eq!(
        cost(&bench),
        dollars(2.0),
        "a new conversation costs nothing"
    );
    // A resumed conversation goes on from there, also in the daemon that comes after.
    begins(&mut bench, true);
    bench.hear(22, HookWhat::PromptTaken);
    let mut next = Bench::with(bench.machine.config().as_ref().clone());
    next.machine.recall(bench.machine.past(), None, None);
    next.put(Input::Started {
        pid: 43,
        continues: true,
    });
    next.hear(23, HookWhat::Cost(dollars(5.0)));
    assert_eq!(cost(&next), dollars(5.0));
    // It may count from zero instead.
    begins(&mut next, true);
    next.hear(24, HookWhat::PromptTaken);
    next.hear(25, HookWhat::Cost(dollars(0.5)));
    assert_eq!(cost(&next), dollars(5.5));
    // Nothing is known of the earlier cost of a conversation that was taken over.
    begins(&mut next, true);
    next.machine.begins_elsewhere();
    next.hear(26, HookWhat::PromptTaken);
    next.hear(27, HookWhat::Cost(dollars(50.0)));
    next.hear(28, HookWhat::Cost(dollars(51.0)));
    assert_eq!(cost(&next), dollars(6.5));
}

/// Beyond the limit of a day messages wait for the next one; nothing is cut off.
#[test]
fn the_cost_of_a_day_holds_messages_until_the_next_day() {
    let mut bench = Bench::idle_with(with_supervision(Supervision {
        max_cost_per_day: Some(dollars(1.0)),
        ..Supervision::default()
    }));
    for (token, figure) in [(20, 3.0), (21, 3.5)] {
        bench.hear(token, HookWhat::Cost(dollars(figure)));
    }
    assert!(bench.has(&Effect::DateCost(dollars(0.5))), "what has grown");
    let evening = bench.now + Duration::from_secs(3600);
    let spend = |bench: &mut Bench, day, ends, amount| {
        let grown = dollars(amount);
        bench.put(Input::CostOn { day, ends, grown });
    };
    let morning = bench.now;
    spend(&mut bench, 6, morning, 0.75);
    spend(&mut bench, 7, evening, 0.75);
    assert_eq!(bench.troubles(), [""; 0], "each day counts by itself");
    spend(&mut bench, 7, evening, 0.25);
    spend(&mut bench, 7, evening, 0.25);
    assert_eq!(bench.troubles(), ["max_cost_per_day"], "it is told once");
    assert!(bench.machine.pid().is_some(), "it is not stopped");
    bench.send(5, "later");
    let doing = bench.machine.doing(bench.now).unwrap_or_default();
    assert!(
        doing.contains("until max_cost_per_day counts anew in 1h"),
        "{doing}"
    );
    // A usage limit that is reset sooner does not end the wait.
    let sooner = Some(bench.now + Duration::from_secs(60));
    let text = "You've hit your limit".to_owned();
    bench.put(Input::Limited {
        text,
        until: sooner,
    });
    bench.pass(Duration::from_secs(3599));
    assert_eq!(bench.keys, [""; 0], "nothing is sent before");
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.keys, ["paste"]);
    assert!(!bench.machine.is_over_budget());
}

/// The budget of a role holds the messages of each of its slots, and one of them tells a person.
#[test]
fn the_cost_of_a_role_holds_messages_until_the_next_day() {
    let supervision = Supervision {
        max_cost_per_day: Some(dollars(5.0)),
        max_role_cost_per_day: Some(dollars(10.0)),
        ..Supervision::default()
    };
    for (is_told, troubles) in [(false, &["max_role_cost_per_day"][..]), (true, &[])] {
        let mut bench = Bench::idle_with(with_supervision(supervision.clone()));
        let evening = bench.now + Duration::from_secs(3600);
        let spent = |bench: &mut Bench, day, amount| {
            bench.put(Input::RoleCost(RoleCost {
                day,
                ends: evening,
                cost: dollars(amount),
                is_told,
            }));
        };
        spent(&mut bench, 7, 9.99);
        assert_eq!(bench.troubles(), [""; 0]);
        spent(&mut bench, 7, 10.0);
        spent(&mut bench, 7, 11.0);
        assert_eq!(bench.troubles(), troubles, "it is told once");
        assert!(bench.machine.pid().is_some(), "it is not stopped");
        bench.send(5, "later");
        let doing = bench.machine.doing(bench.now).unwrap_or_default();
        let until = "until max_role_cost_per_day counts anew in 1h";
        assert!(doing.contains(until), "{doing}");
        bench.pass(Duration::from_secs(3599));
        assert_eq!(bench.keys, [""; 0], "nothing is sent before");
        bench.pass(Duration::from_secs(1));
        assert_eq!(bench.keys, ["paste"]);
        assert!(!bench.machine.is_over_budget());
    }
}

#[test]
fn too_much_memory_ends_the_run_and_not_the_slot() {
    let mut bench = at_work(Supervision {
        max_memory: Some(2_000_000),
        ..Supervision::default()
    });
    bench.measure(2_000_000, 0);
    assert!(!bench.has(&Effect::StopTree));
    bench.measure(2_000_001, 0);
    assert!(bench.has(&Effect::StopTree));
    bench.end(143);
    assert_eq!(bench.machine.cause(), Some("over max_memory"));
    assert!(bench.machine.poll_timeout().is_some());
}

#[test]
fn a_slot_with_nothing_to_do_is_stopped_and_one_at_work_is_not() {
    let supervision = || Supervision {
        idle_stop: Some(Duration::from_secs(300)),
        ..Supervision::default()
    };
    let mut busy = at_work(supervision());
    busy.pass(Duration::from_secs(3600));
    assert!(!busy.has(&Effect::StopTree));
    busy.answer();
    let due = busy.machine.poll_timeout().unwrap();
    assert_eq!(due - busy.now, Duration::from_secs(300));
    busy.pass(Duration::from_secs(299));
    assert!(!busy.has(&Effect::StopTree));
    busy.pass(Duration::from_secs(1));
    assert!(busy.has(&Effect::StopTree));
    assert_eq!(busy.troubles(), ["idle_stop"]);
    busy.end(0);
    let why = busy.machine.last_error().unwrap();
    assert_eq!(why, "idle_stop: idle for 5m");
}

#[test]
fn a_usage_limit_stops_the_slot_or_holds_its_messages() {
    let limited = |on_limit| {
        let mut bench = Bench::idle_with(with_supervision(Supervision {
            on_limit,
            ..Supervision::default()
        }));
        let text = "You've hit your session limit · resets 3pm";
        bench.see(Observation {
            last_error: Some(text.into()),
            ..screen(State::Idle, "")
        });
        assert!(bench.has(&Effect::FindReset(text.into())));
        let until = Some(bench.now + Duration::from_secs(3600));
        bench.put(Input::Limited {
            text: text.into(),
            until,
        });
        assert_eq!(bench.troubles(), ["usage limit"]);
        bench
    };
    let mut stopped = limited(OnLimit::Stop);
    assert!(stopped.has(&Effect::StopTree));
    stopped.end(0);
    assert_eq!(stopped.machine.state(), State::Exited);
    assert_eq!(stopped.machine.poll_timeout(), None);

    let mut waiting = limited(OnLimit::Wait);
    waiting.send(5, "later");
    waiting.pass(Duration::from_secs(3599));
    assert_eq!(waiting.keys, [""; 0], "nothing is sent before");
    waiting.pass(Duration::from_secs(1));
    assert_eq!(waiting.keys, ["paste"]);
}

/// The screen has its own wording for some errors; the transcript marks every one of them.
#[test]
fn an_error_that_only_the_transcript_tells_is_the_last_error() {
    let failed = |source, failure: &str| {
        let mut bench = Bench::idle();
        bench.send(2, "spend");
        bench.arrives("spend");
        bench.see(screen(State::Thinking, ""));
        bench.see(screen(State::Idle, ""));
        bench.put(Input::Found(Answer {
            text: None,
            source,
            failure: Some(failure.into()),
        }));
        bench
    };
    let text = "Credit balance is too low";
    let mut bench = failed("transcript", text);
    assert_eq!(bench.machine.last_error().as_deref(), Some(text));
    assert!(bench.has(&Effect::FindReset(text.into())));
    bench.see(screen(State::Thinking, ""));
    bench.see(screen(State::Idle, ""));
    assert_eq!(bench.machine.last_error(), None, "another turn was taken");

    for (source, failure) in [
        ("transcript", crate::core::claude::transcript::INTERRUPTED),
        ("hook", "You've hit your limit · resets 3pm"),
    ] {
        assert_eq!(failed(source, failure).machine.last_error(), None);
    }
    let mut cleared = failed("transcript", text);
    cleared.hear(9, HookWhat::SessionStart);
    assert_eq!(cleared.machine.last_error(), None);
}

/// What a killed daemon leaves for the next one.
#[test]
fn a_slot_stands_as_it_stood() {
    let mut bench = Bench::with(config());
    assert_eq!(bench.machine.desired_state(), None);
    bench.put(Input::Start(1));
    assert_eq!(bench.machine.desired_state(), Some(DesiredState::Wanted));
    bench.put(Input::Started {
        pid: 42,
        continues: false,
    });
    bench.end(1);
    assert_eq!(bench.machine.desired_state(), Some(DesiredState::Wanted));
    bench.put(Input::Stop(2));
    let down = bench.machine.desired_state();
    assert!(matches!(&down, Some(DesiredState::Down { reason, .. }) if reason == "stopped"));

    let mut next = Bench::with(config());
    next.machine
        .recall(bench.machine.past(), down.as_ref(), None);
    assert_eq!(next.machine.last_error().as_deref(), Some("stopped"));
    assert_eq!(next.machine.restarts(), 1);
    next.put(Input::Start(3));
    assert!(next.has(&Effect::Spawn));
}

#[test]
fn a_usage_limit_outlives_the_daemon_that_saw_it() {
    let limit_reset = |bench: &Bench| Some(bench.now + Duration::from_secs(3600));
    let wanted = Some(DesiredState::Wanted);
    let recalled = || {
        let mut bench = Bench::with(config());
        let until = limit_reset(&bench);
        bench
            .machine
            .recall(Past::default(), wanted.as_ref(), until);
        bench
    };
    // It runs: its messages wait.
    let mut runs = recalled();
    runs.put(Input::Started {
        pid: 42,
        continues: true,
    });
    runs.see(screen(State::Idle, ""));
    runs.send(5, "later");
    runs.pass(Duration::from_secs(3599));
    assert_eq!(runs.keys, [""; 0]);
    runs.pass(Duration::from_secs(1));
    assert_eq!(runs.keys, ["paste"]);
    // It has ended: its start waits, unless a person wants it.
    let mut ended = recalled();
    ended.put(Input::Start(NOBODY));
    assert!(!ended.has(&Effect::Spawn));
    assert_eq!(ended.machine.cause(), Some("usage limit"));
    let due = ended.machine.poll_timeout().unwrap();
    assert_eq!(due - ended.now, Duration::from_secs(3600));
    ended.put(Input::Start(7));
    assert!(ended.has(&Effect::Spawn));
    assert_eq!(ended.machine.held_until(), None);
}
