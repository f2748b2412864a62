//! The identity of dialogs, from the reader and the gate.

use super::doubt::asked_about_make;
use super::*;

/// The program draws the dialog of the call for a smaller terminal, where it reads as another one.
#[test]
fn a_resize_makes_no_other_dialog_of_a_call() {
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    let redrawing = Observation {
        redrawing: true,
        certain: false,
        ..at(dialog("d1", "make"))
    };
    let low = |id: &str| Dialog {
        input: None,
        complete: false,
        ..dialog(id, "make")
    };
    bench.see(redrawing);
    bench.see(at(low("d2")));
    bench.see(at(low("d2")));
    assert_eq!(
        bench.machine.dialog().map(|dialog| dialog.id.as_str()),
        Some("d1")
    );
    assert!(
        !bench
            .told
            .iter()
            .any(|what| matches!(what, EventKind::DialogGone { .. }))
    );
    bench.pass(SETTLED);
    bench.put(confirm(20, "yes", Some("d1")));
    assert_eq!(bench.keys, ["1"]);
    // Without a resize in between it is another one: something else may have drawn it.
    let mut bench = asked_about_make();
    bench.settled(dialog("d1", "make"));
    bench.see(at(low("d2")));
    assert_eq!(
        bench.machine.dialog().map(|dialog| dialog.id.as_str()),
        Some("d2")
    );
}

/// Only the ends of two calls' dialogs are visible, and they read the same.
#[test]
fn a_dialog_about_another_call_is_another_dialog() {
    let mut bench = asked_about_make();
    let low = Dialog {
        input: None,
        complete: false,
        ..dialog("d1", "make")
    };
    bench.settled(low.clone());
    let first = bench.machine.dialog().expect("a dialog").clone();
    assert_eq!(
        (first.id.as_str(), first.request.as_deref()),
        ("d1", Some("t1"))
    );
    let call = |id: &str, command: &str| (id.to_owned(), json!({ "command": command }));
    let (id, input) = call("t1", "make");
    let (tool, id) = ("Bash".to_owned(), Some(id));
    bench.hear(
        10,
        HookWhat::AfterTool {
            tool: tool.clone(),
            input,
            id,
            failure: None,
        },
    );
    let (id, input) = call("t2", "git push");
    bench.hear(
        11,
        HookWhat::BeforeTool {
            tool,
            input,
            id: Some(id),
        },
    );
    bench.see(at(low));
    let second = bench.machine.dialog().expect("a dialog").clone();
    assert_eq!(second.request.as_deref(), Some("t2"));
    assert_ne!(second.id, "d1");
    bench.pass(SETTLED + REDRAWN);
    bench.put(confirm(20, "yes", Some("d1")));
    assert_eq!(bench.fault(20), Some(Fault::Refused));
    assert!(bench.keys.is_empty(), "{:?}", bench.keys);
}
