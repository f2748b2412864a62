use super::*;

type Sends = Once<Sending>;

fn record(text: &str) -> OnceRecord<Sending> {
    let sending = Sending {
        text: text.into(),
        plain: true,
        unattended: false,
        person: None,
    };
    OnceRecord::new("a".into(), "x".into(), sending)
}

fn failed() -> OnceOutcome<Sending> {
    OnceOutcome::Failed(RpcError::new(Fault::Failed, "no answer"))
}

#[test]
fn a_message_is_taken_up_once_and_its_end_is_told_again_by_the_next_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let sends = Sends::open(dir.path().join("sends")).unwrap();
    let first = sends.begin(record("hello")).unwrap();
    assert!(matches!(first, Begun::Yours(..)));
    let second = sends.begin(record("hello")).unwrap();
    assert!(matches!(second, Begun::UnderWay(_)));
    assert!(
        sends.begin(record("another")).is_err(),
        "one id, one message"
    );
    sends.entered("a", "x", |_| {}).unwrap();
    let next = Sends::open(dir.path().join("sends")).unwrap();
    match next.begin(record("hello")).unwrap() {
        Begun::Yours(_, known) => assert!(known.entered_at.is_some()),
        _ => panic!("the earlier daemon has not ended it"),
    }
    next.settle("a", "x", Came::End(failed()));
    let last = Sends::open(dir.path().join("sends")).unwrap();
    assert!(matches!(last.begin(record("hello")).unwrap(), Begun::Ended(end) if end == failed()));
}

#[test]
fn what_was_certainly_not_sent_may_be_sent_again() {
    let dir = tempfile::tempdir().unwrap();
    let sends = Sends::open(dir.path().join("sends")).unwrap();
    let begun = sends.begin(record("hello")).unwrap();
    let refused = RpcError::new(Fault::Refused, "a dialog is open");
    sends.settle("a", "x", Came::Nothing(refused));
    assert!(sends.look("a", "x").is_err());
    assert!(matches!(
        sends.begin(record("other")).unwrap(),
        Begun::Yours(..)
    ));
    drop(begun);
}

#[test]
fn when_the_last_one_goes_a_message_is_abandoned() {
    let dir = tempfile::tempdir().unwrap();
    let sends = Sends::open(dir.path().join("sends")).unwrap();
    let Begun::Yours(first, _) = sends.begin(record("hello")).unwrap() else {
        panic!("it is new");
    };
    let active = first.active();
    let Begun::UnderWay(second) = sends.begin(record("hello")).unwrap() else {
        panic!("it is under way");
    };
    drop(first);
    assert!(!active.abandoned.is_cancelled());
    drop(second);
    assert!(active.abandoned.is_cancelled());
}

#[test]
fn ids_that_are_no_file_names_are_refused() {
    for bad in ["", "../x", ".x", "-x", "a/b", "a b", &"x".repeat(65)] {
        assert!(check_id(bad).is_err(), "{bad}");
    }
    for good in ["x", "2026-11-17_a.b", &"x".repeat(64)] {
        assert!(check_id(good).is_ok(), "{good}");
    }
}

/// On a full disk a yes waits, and a no is given.
#[test]
fn a_no_is_taken_up_also_if_it_can_not_be_written_down() {
    let dir = tempfile::tempdir().unwrap();
    let confirms = Once::<Confirming>::open(dir.path().join("confirms")).unwrap();
    std::fs::remove_dir(dir.path().join("confirms")).unwrap();
    std::fs::write(dir.path().join("confirms"), "").unwrap();
    let answer = |answer: &str, dialog: Option<&str>| {
        let asked = ConfirmParams {
            slot: "a".into(),
            answer: Some(answer.into()),
            text: None,
            dialog: None,
            reason: None,
            anyway: false,
            against_rule: false,
            id: None,
        };
        let confirming = Confirming {
            asked,
            dialog: dialog.map(str::to_owned),
            always: None,
            chosen: None,
        };
        confirms.begin(OnceRecord::new("a".into(), answer.into(), confirming))
    };
    for (refused, dialog) in [("yes", Some("d1")), ("always", Some("d1")), ("no", None)] {
        let error = answer(refused, dialog).err().expect("it is refused");
        assert_eq!(error.fault, Fault::Refused, "{refused}");
        // A file is in the place of the directory: room would not help.
        assert!(error.next.is_some_and(|next| next.contains("ls -ld")));
    }
    assert!(matches!(answer("no", Some("d1")), Ok(Begun::Yours(..))));
}
