//! Deaths, restarts and the replies to waiting clients.

use super::*;

#[test]
fn a_slot_that_dies_is_started_again_each_time() {
    let mut bench = Bench::idle();
    for restart in 1..=3 {
        let report = ExitReport {
            code: None,
            signal: Some(9),
        };
        bench.put(Input::Ended(ProgramEnd {
            report,
            said: None,
            limit_reset: None,
        }));
        assert_eq!(bench.machine.state(), State::Exited);
        let due = bench.machine.poll_timeout().unwrap();
        bench.others.clear();
        bench.pass(due - bench.now);
        assert!(bench.has(&Effect::Spawn));
        bench.put(Input::Started {
            pid: 42,
            continues: true,
        });
        assert_eq!(bench.machine.restarts(), restart);
    }
}

#[test]
fn a_clean_exit_is_final_unless_always_is_set() {
    let clean = || {
        Input::Ended(ProgramEnd {
            report: ExitReport {
                code: Some(0),
                signal: None,
            },
            said: None,
            limit_reset: None,
        })
    };
    let mut bench = Bench::idle();
    bench.put(clean());
    assert_eq!(
        (bench.machine.state(), bench.machine.poll_timeout()),
        (State::Exited, None)
    );
    let mut always = Bench::idle_with(SlotConfig {
        restart: Restart::Always,
        ..config()
    });
    always.put(clean());
    assert!(always.machine.poll_timeout().is_some());
}

/// Nobody waits for a message that was only submitted.
#[test]
fn a_message_that_dies_unanswered_is_told_of() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.hear(3, HookWhat::PromptTaken);
    bench.put(Input::Ended(ProgramEnd {
        report: ExitReport {
            code: None,
            signal: Some(9),
        },
        said: None,
        limit_reset: None,
    }));
    let text = "it ended while something waited: a message that was not yet answered";
    let warning = EventKind::Warning { text: text.into() };
    assert!(bench.told.contains(&warning), "{:?}", bench.told);
}

#[test]
fn a_persons_stop_wins_over_a_restart_that_is_under_way() {
    let mut bench = Bench::idle();
    bench.put(Input::Ended(ProgramEnd {
        report: ExitReport {
            code: Some(1),
            signal: None,
        },
        said: None,
        limit_reset: None,
    }));
    bench.put(Input::Stop(2));
    bench.others.clear();
    bench.pass(Duration::from_secs(3600));
    assert!(!bench.has(&Effect::Spawn));
    assert_eq!(bench.machine.state(), State::Exited);
}

#[test]
fn after_five_deaths_in_a_row_it_gives_up_and_says_why() {
    let mut bench = Bench::idle();
    for _ in 0..5 {
        bench.put(Input::Ended(ProgramEnd {
            report: ExitReport {
                code: Some(3),
                signal: None,
            },
            said: Some("no key".into()),
            limit_reset: None,
        }));
        if let Some(due) = bench.machine.poll_timeout() {
            bench.pass(due - bench.now);
            bench.put(Input::Started {
                pid: 42,
                continues: true,
            });
        }
    }
    assert_eq!(bench.machine.state(), State::Error);
    assert!(
        bench
            .machine
            .last_error()
            .unwrap()
            .contains("exit 3: no key")
    );
    bench.put(Input::Start(7));
    assert!(bench.has(&Effect::Spawn));
}

#[test]
fn a_refused_folder_is_not_tried_again() {
    let mut bench = Bench::with(config());
    bench.put(Input::Start(1));
    bench.put(Input::Started {
        pid: 42,
        continues: false,
    });
    bench.settled(trust(0));
    bench.put(confirm(2, "no", None));
    assert_eq!(bench.keys, ["Esc"]);
    bench.see(Observation {
        composer: None,
        ..screen(State::Exited, "")
    });
    bench.put(Input::Ended(ProgramEnd {
        report: ExitReport {
            code: Some(1),
            signal: None,
        },
        said: None,
        limit_reset: None,
    }));
    assert!(matches!(
        bench.replies.get(&2),
        Some(Ok(Reply::Confirmed { .. }))
    ));
    assert_eq!(bench.machine.state(), State::Error);
    assert_eq!(bench.machine.poll_timeout(), None);
}

#[test]
fn whoever_waits_is_told_when_the_program_dies() {
    let mut bench = Bench::idle();
    bench.send(2, "hello");
    bench.arrives("hello");
    bench.see(screen(State::Thinking, ""));
    bench.send(3, "next");
    bench.put(Input::Ended(ProgramEnd {
        report: ExitReport {
            code: None,
            signal: Some(9),
        },
        said: None,
        limit_reset: None,
    }));
    assert_eq!(bench.fault(2), Some(Fault::Failed));
    assert_eq!(bench.fault(3), Some(Fault::Failed), "nothing is replayed");
    bench.send(4, "after it");
    assert!(!bench.replies.contains_key(&4), "it waits for the restart");
    bench.put(Input::Stop(5));
    assert_eq!(bench.fault(4), Some(Fault::Failed));
}

#[test]
fn the_first_prompt_is_sent_once_in_a_new_conversation() {
    let with_prompt = || SlotConfig {
        prompt: Some("Read TODO.md.".into()),
        ..config()
    };
    let mut bench = Bench::with(with_prompt());
    bench.put(Input::Start(1));
    bench.put(Input::Started {
        pid: 42,
        continues: false,
    });
    bench.see(screen(State::Idle, ""));
    assert_eq!(bench.keys, ["paste"]);
    let mut resumed = Bench::with(with_prompt());
    resumed.put(Input::Start(1));
    resumed.put(Input::Started {
        pid: 42,
        continues: true,
    });
    resumed.see(screen(State::Idle, ""));
    assert!(resumed.keys.is_empty());
}

/// The program has not ended: nothing is started beside it, and no restart is counted.
#[test]
fn a_shim_that_does_not_answer_is_one_steady_state() {
    let mut bench = Bench::with(config());
    bench.put(Input::Start(1));
    bench.put(Input::NotReached("its shim was stopped".into()));
    assert_eq!(bench.fault(1), Some(Fault::Failed));
    bench.told.clear();
    for _ in 0..20 {
        bench.others.clear();
        bench.pass(SHIM_ANSWERS);
        assert!(bench.has(&Effect::Spawn), "it is looked for");
        assert_eq!(bench.machine.state(), State::Error);
        bench.put(Input::NotReached("its shim was stopped".into()));
        assert_eq!(bench.machine.state(), State::Error);
    }
    assert_eq!(bench.machine.restarts(), 0);
    assert_eq!(bench.told, [], "it was told once");
    bench.send(2, "hello");
    bench.put(Input::Started {
        pid: 42,
        continues: true,
    });
    bench.see(screen(State::Idle, ""));
    assert_eq!(bench.keys, ["paste"], "what waited is typed");

    // It has ended after all: the waiting messages were for the old program.
    let mut bench = Bench::with(config());
    bench.put(Input::Start(1));
    bench.put(Input::NotReached("its shim was stopped".into()));
    bench.send(2, "hello");
    bench.pass(SHIM_ANSWERS);
    bench.put(Input::ShimGone);
    assert_eq!(bench.machine.state(), State::Starting);
    assert_eq!(bench.fault(2), Some(Fault::Failed));
}
