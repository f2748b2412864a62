//! What goes through the terminal, both ways.

use crate::stage::*;

#[tokio::test]
async fn what_is_typed_is_echoed_and_recorded() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    assert_eq!((shim.hello.cols, shim.hello.rows), (80, 24));
    assert_eq!(shim.hello.last_input, 0);
    shim.input(1, "hello\n");
    shim.until_text("hello\r\nhello\r\n").await;
    shim.until_heard(FromShim::Written { n: 1 }).await;
    assert_eq!(stage.all_recorded(), "hello\r\nhello\r\n");
    let start = format!("start {}", shim.hello.child_pid);
    assert_eq!(stage.marks("m"), std::slice::from_ref(&start));
    shim.input(2, "\x04");
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: Some(0),
            signal: None
        }
    );
    assert_eq!(stage.marks("m"), [start, "exit 0".into()]);
    shim.dismiss().await;
    assert!(!stage.path("test.sock").exists());
}

#[tokio::test]
async fn silence_is_told_in_recorded_time() {
    let stage = Stage::new();
    let mut shim = stage.sh("printf one; read x; printf two; read x").await;
    shim.until_quiet(2).await;
    shim.input(1, "\n");
    shim.until_quiet(4).await;
    let mut last_output = Duration::ZERO;
    let mut reached = Duration::ZERO;
    for message in &shim.heard {
        match message {
            FromShim::Output { at, .. } => {
                assert!(*at > reached, "{:?}", shim.heard);
                (last_output, reached) = (*at, *at);
            }
            FromShim::Quiet { at } => {
                assert!(
                    *at >= last_output + Duration::from_millis(20),
                    "{:?}",
                    shim.heard
                );
                reached = *at;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_utf8_are_the_same_everywhere() {
    let stage = Stage::new();
    let script = "stty raw -echo; printf 'a\\342'; read x; printf '\\202\\254b\\377c\\360\\237\\246'; read x";
    let mut shim = stage.sh(script).await;
    shim.until_text("a").await;
    shim.input(1, "\n");
    // The beginning of the euro sign has waited too long for its rest by the time that this is typed,
    // unless the two were quick enough; both are right, and the recording says which it was.
    shim.until_text("c\u{fffd}").await;
    let text = shim.text();
    let allowed = [
        "a\u{20ac}b\u{fffd}c\u{fffd}",
        "a\u{fffd}\u{fffd}\u{fffd}b\u{fffd}c\u{fffd}",
    ];
    assert!(allowed.contains(&text.as_str()), "{text:?}");
    assert_eq!(stage.all_recorded(), text);
    let bytes = b"a\xe2\x82\xacb\xffc\xf0\x9f\xa6";
    assert_eq!(shim.exact, bytes);
    let length = std::fs::metadata(&stage.recording).expect("a recording");
    assert_eq!(stage.recorded_exactly(length.len() as usize), bytes);
}

#[tokio::test]
async fn a_resize_reaches_the_child_and_the_recording() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("trap 'stty size' WINCH; stty size; while :; do read x; done")
        .await;
    shim.until_text("24 80\r\n").await;
    shim.send(ToShim::Resize {
        cols: 132,
        rows: 50,
    });
    shim.until_text("50 132\r\n").await;
    assert_eq!(stage.marks("r"), ["132x50"]);
    let resized = |message: &FromShim| {
        matches!(
            message,
            FromShim::Resized {
                cols: 132,
                rows: 50,
                ..
            }
        )
    };
    assert!(shim.heard.iter().any(resized), "{:?}", shim.heard);
    shim.heard.clear();
    // A size that the child does not care about is still a new screen, and so followed by a silence.
    shim.send(ToShim::Signal {
        signal: 19,
        foreground: false,
    });
    shim.send(ToShim::Resize {
        cols: 132,
        rows: 50,
    });
    shim.until("the resize", |driven| driven.heard.iter().any(resized))
        .await;
    shim.until_quiet(2).await;
    shim.send(ToShim::Signal {
        signal: 18,
        foreground: false,
    });
    shim.send(ToShim::Resize { cols: 0, rows: 50 });
    shim.until("a refusal", |driven| driven.has_trouble("0x50"))
        .await;
    drop(shim);
    let shim = stage.adopt().await;
    assert_eq!((shim.hello.cols, shim.hello.rows), (132, 50));
}

#[tokio::test]
async fn an_input_number_is_written_once() {
    let stage = Stage::new();
    let mut shim = stage.sh("stty -echo; echo ready; exec cat").await;
    shim.until_text("ready").await;
    shim.input(1, "one\n");
    shim.until_heard(FromShim::Written { n: 1 }).await;
    drop(shim);
    let mut shim = stage.adopt().await;
    assert_eq!(shim.hello.last_input, 1);
    shim.input(1, "one\n");
    shim.until_heard(FromShim::Written { n: 1 }).await;
    shim.input(2, "two\n");
    shim.until_text("two").await;
    assert_eq!(shim.text(), "ready\r\none\r\ntwo\r\n");
}

#[tokio::test]
async fn a_paste_of_a_megabyte_arrives_at_a_slow_reader() {
    let stage = Stage::new();
    // Raw, so that the terminal passes every byte; the first kilobytes are read one by one.
    let mut shim = stage
        .sh("stty raw -echo; echo ready; (dd bs=1 count=5000 2>/dev/null; sleep 0.3; head -c 1043576) | cksum")
        .await;
    shim.until_text("ready").await;
    let paste: Vec<u8> = (0..1_048_576u32)
        .map(|i| b'a' + (i.wrapping_mul(2_654_435_761) >> 28) as u8)
        .collect();
    std::fs::write(stage.path("paste"), &paste).unwrap();
    shim.input(1, paste);
    shim.until_heard(FromShim::Written { n: 1 }).await;
    shim.exit().await;
    let sum = std::process::Command::new("cksum")
        .arg(stage.path("paste"))
        .output()
        .unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap();
    let sum = sum.split(" /").next().unwrap();
    assert!(shim.text().contains(sum), "{sum} expected: {}", shim.text());
}

#[tokio::test]
async fn input_that_nobody_reads_is_refused_whole_in_the_end() {
    let stage = Stage::new();
    let mut shim = stage.sh("stty raw -echo; echo ready; sleep 1000").await;
    shim.until_text("ready").await;
    for n in 1..=6 {
        shim.input(n, vec![b'x'; 1 << 20]);
        shim.link.flush().await.expect("the shim reads");
    }
    shim.until("a refusal", |driven| {
        driven.heard.iter().any(
            |m| matches!(m, FromShim::Refused { n: 6, reason } if reason.contains("has not read")),
        )
    })
    .await;
    // The way for a stop is not blocked by it.
    shim.send(ToShim::Stop { grace_ms: 0 });
    shim.exit().await;
    let ended = |n| {
        shim.heard
            .iter()
            .any(|m| matches!(m, FromShim::Refused { n: refused, .. } if *refused == n))
    };
    assert!((1..=6).all(ended), "{:?}", shim.heard);
}
