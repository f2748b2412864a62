//! Screens that another witness contradicts.

use super::*;

fn disputed(bench: &mut Bench) {
    let why = "the record says otherwise".to_owned();
    bench.put(Input::Witnessed(Some(why)));
}

#[test]
fn a_dialog_that_is_disputed_is_not_answered_by_rule() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty());
    assert_eq!(
        bench.machine.doubt(),
        None,
        "it may be a moment's difference"
    );
    bench.pass(Duration::from_secs(3));
    assert!(bench.keys.is_empty());
    let why = "the record says otherwise".to_owned();
    assert!(bench.told.contains(&What::Doubtful { why: why.clone() }));
    assert!(bench.has(&Effect::Repaint));
    assert_eq!(bench.machine.doubt(), Some(why.as_str()));
    let reason = bench.machine.why_a_person();
    assert_eq!(reason, Some(format!("doubtful: {why}")));
    assert_eq!(
        bench.machine.poll_timeout(),
        None,
        "nothing is due any more"
    );

    bench.put(Input::Witnessed(None));
    assert!(bench.told.contains(&What::DoubtGone));
    assert_eq!(bench.machine.doubt(), None);
    bench.pass(SETTLED);
    assert!(bench.keys.is_empty(), "the person was told of this one");
}

#[test]
fn a_difference_that_passes_only_delays_the_answer() {
    let mut bench = Bench::idle();
    bench.see(at(dialog("d1", "rm x")));
    disputed(&mut bench);
    bench.pass(SETTLED);
    bench.put(Input::Witnessed(None));
    assert_eq!(bench.keys, ["4"]);
    let doubtful = |what: &What| matches!(what, What::Doubtful { .. } | What::DoubtGone);
    assert!(!bench.told.iter().any(doubtful));
}
