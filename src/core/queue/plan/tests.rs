use super::*;
use proptest::prelude::*;

fn job(name: &str, needs: &[usize], retries: u32) -> Job {
    Job {
        name: name.to_owned(),
        work: Work::Prompt {
            to: "a".to_owned(),
            text: "b".to_owned(),
        },
        timeout: None,
        needs: needs.to_vec(),
        retries,
    }
}

fn ended(success: bool) -> Report {
    Report {
        success,
        ..Report::default()
    }
}

fn started(effects: &[Effect]) -> Vec<usize> {
    let started = effects.iter().filter_map(|effect| match effect {
        Effect::Start(place, _) => Some(*place),
        _ => None,
    });
    started.collect()
}

fn error(run: &Run, place: usize) -> &str {
    run.report(place).unwrap().error.as_deref().unwrap()
}

#[test]
fn what_is_needed_goes_before_and_no_more_than_allowed_run_at_once() {
    let jobs = vec![
        job("last", &[1, 2], 0),
        job("a", &[], 0),
        job("b", &[], 0),
        job("c", &[], 0),
    ];
    let mut run = Run::new(jobs, 2, false);
    assert_eq!(started(&run.advance()), [1, 2]);
    assert_eq!(started(&run.ended(2, ended(true))), [3]);
    assert_eq!(started(&run.ended(3, ended(true))), [] as [usize; 0]);
    assert_eq!(started(&run.ended(1, ended(true))), [0]);
    run.ended(0, ended(true));
    assert!(run.is_over());
}

#[test]
fn a_failure_skips_those_that_need_it_and_nobody_else() {
    let jobs = vec![
        job("a", &[], 0),
        job("b", &[0], 0),
        job("c", &[1], 0),
        job("d", &[], 0),
    ];
    let mut run = Run::new(jobs, 9, false);
    run.advance();
    run.ended(0, ended(false));
    assert_eq!(error(&run, 1), "not started: it needs `a`, which failed");
    assert_eq!(
        error(&run, 2),
        "not started: it needs `b`, which was not run"
    );
    assert!(!run.is_over());
    run.ended(3, ended(true));
    assert!(run.is_over() && run.report(3).unwrap().success);
}

#[test]
fn a_failure_is_tried_again_as_often_as_was_asked_for() {
    let mut run = Run::new(vec![job("a", &[], 2)], 1, false);
    run.advance();
    for attempt in [2, 3] {
        assert_eq!(run.ended(0, ended(false)), [Effect::Start(0, attempt)]);
    }
    assert_eq!(run.ended(0, ended(false)), [Effect::Tell(0)]);
    assert!(run.is_over());
}

#[test]
fn the_first_failure_stops_all_where_that_was_asked_for() {
    let jobs = vec![job("a", &[], 0), job("b", &[], 5), job("c", &[], 0)];
    let mut run = Run::new(jobs, 2, true);
    run.advance();
    let effects = run.ended(0, ended(false));
    assert!(effects.contains(&Effect::StopAll), "{effects:?}");
    assert_eq!(error(&run, 2), "not started: `a` failed");
    assert_eq!(
        started(&run.ended(1, ended(false))),
        [] as [usize; 0],
        "no retry"
    );
    assert!(run.is_over());
}

#[test]
fn circles_are_found() {
    assert_eq!(circle(&[vec![1], vec![2], vec![]]), None);
    assert_eq!(circle(&[vec![0]]), Some(vec![0]));
    assert_eq!(
        circle(&[vec![1], vec![2], vec![3], vec![1]]),
        Some(vec![1, 2, 3])
    );
}

proptest! {
    /// Whatever succeeds or fails: every task ends once, after all that it needs, and no more than allowed run at once.
    #[test]
    fn every_task_ends_once(
        needs in prop::collection::vec(prop::collection::vec(0..100usize, 0..4), 1..20),
        limit in 1..5usize,
        outcomes in prop::collection::vec(any::<bool>(), 200),
    ) {
        // Each needs only earlier ones, so there is no cycle.
        let jobs: Vec<Job> = needs.iter().enumerate().map(|(place, needs)| {
            let needs: Vec<usize> = match place {
                0 => Vec::new(),
                _ => needs.iter().map(|need| need % place).collect(),
            };
            job(&place.to_string(), &needs, (place % 3) as u32)
        }).collect();
        let mut run = Run::new(jobs.clone(), limit, false);
        let mut outcomes = outcomes.into_iter();
        let mut effects = std::collections::VecDeque::from(run.advance());
        let (mut told, mut running) = (vec![0; jobs.len()], Vec::new());
        loop {
            while let Some(effect) = effects.pop_front() {
                match effect {
                    Effect::Start(place, _) => {
                        running.push(place);
                        for need in &jobs[place].needs {
                            prop_assert!(run.report(*need).is_some_and(|report| report.success));
                        }
                    }
                    Effect::Tell(place) => told[place] += 1,
                    Effect::StopAll => prop_assert!(false),
                }
            }
            prop_assert!(running.len() <= limit);
            let Some(place) = running.pop() else { break };
            effects.extend(run.ended(place, ended(outcomes.next().unwrap_or(true))));
        }
        prop_assert!(run.is_over());
        prop_assert!(told.iter().all(|count| *count == 1), "{:?}", told);
    }
}
