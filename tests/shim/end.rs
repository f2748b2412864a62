//! How a slot ends, and that nobody is left.

use crate::stage::*;
use rustix::process::Signal;

#[tokio::test]
async fn a_signal_reaches_the_whole_group() {
    let stage = Stage::new();
    // Without job control both processes are in the child's group.
    let mut shim = stage
        .sh("sh -c 'trap \"echo inner; exit\" USR1; echo up; while :; do sleep 0.01; done' & trap 'echo outer' USR1; wait; wait; exit 7")
        .await;
    shim.until_text("up").await;
    shim.send(ToShim::Signal {
        signal: 10,
        foreground: false,
    });
    shim.until_text("inner").await;
    shim.until_text("outer").await;
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: Some(7),
            signal: None
        }
    );
}

#[tokio::test]
async fn an_end_by_a_signal_is_told_as_such() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    shim.send(ToShim::Signal {
        signal: 11,
        foreground: false,
    });
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: None,
            signal: Some(11)
        }
    );
    assert_eq!(stage.marks("m").last().unwrap(), "exit signal 11");
}

/// Its socket was removed, and what its daemon kept: nobody will dismiss it.
#[tokio::test]
async fn a_shim_that_nobody_can_find_ends_after_its_program() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["/bin/sh", "-c", "read line; exit 3"]);
    spec.keeper.home = stage.path("removed");
    let mut shim = stage.launch_spec(&spec).await;
    let pid = shim.hello.shim_pid;
    std::fs::remove_file(stage.path("test.sock")).expect("its socket");
    shim.input(1, "\r");
    shim.exit().await;
    eventually("the shim is gone", || !is_running(pid)).await;
}

/// It is told of something in the very moment in which it goes.
#[tokio::test]
async fn a_dismissal_is_heard_also_of_a_daemon_that_can_no_longer_be_told() {
    let stage = Stage::new();
    let mut shim = stage.sh("tty > tty; exit 3").await;
    shim.exit().await;
    let pid = shim.hello.shim_pid;
    kill(pid, Signal::STOP);
    eventually("the shim stops", || state_of(pid) == Some('T')).await;
    let tty = std::fs::read_to_string(stage.path("tty")).expect("its terminal");
    std::fs::write(tty.trim(), "late").expect("the terminal takes it");
    shim.send(ToShim::Dismiss);
    shim.link.flush().await.expect("it is on its way");
    drop(shim);
    kill(pid, Signal::CONT);
    eventually("the shim ends", || !is_running(pid)).await;
}

#[tokio::test]
async fn an_exit_waits_for_a_daemon() {
    let stage = Stage::new();
    let shim = stage.sh("printf bye; exit 3").await;
    let pid = shim.hello.shim_pid;
    drop(shim);
    eventually("the exit is recorded", || {
        stage.marks("m").last().is_some_and(|mark| mark == "exit 3")
    })
    .await;
    let shim = stage.adopt().await;
    assert_eq!(shim.hello.shim_pid, pid);
    assert_eq!(
        shim.hello.exit,
        Some(ExitReport {
            code: Some(3),
            signal: None
        })
    );
    assert_eq!(stage.recorded(shim.hello.recorded as usize), "bye");
    shim.dismiss().await;
}

#[tokio::test]
async fn stop_ends_also_those_who_fled_into_a_session_of_their_own() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("trap '' TERM HUP; setsid sh -c 'trap \"\" TERM HUP; echo fled $$; while :; do sleep 0.05; done' & while :; do sleep 0.05; done")
        .await;
    shim.until("the pid", |driven| {
        driven.text().contains("fled") && driven.text().ends_with('\n')
    })
    .await;
    let fled: u32 = shim
        .text()
        .trim()
        .rsplit(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    assert!(is_running(fled));
    shim.send(ToShim::Stop { grace_ms: 100 });
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: None,
            signal: Some(9)
        }
    );
    assert!(!is_running(fled), "it was killed before the exit was told");
    assert!(children_of(shim.hello.shim_pid).is_empty());
    shim.dismiss().await;
}

#[tokio::test]
async fn a_child_that_ends_in_time_is_not_killed() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("trap 'echo tidy; exit 5' TERM; echo up; while :; do sleep 0.01; done")
        .await;
    shim.until_text("up").await;
    shim.send(ToShim::Stop { grace_ms: 20_000 });
    assert_eq!(
        shim.exit().await,
        ExitReport {
            code: Some(5),
            signal: None
        }
    );
    assert!(shim.text().contains("tidy"));
}

#[tokio::test]
async fn what_a_child_leaves_behind_ends_with_it() {
    let stage = Stage::new();
    let mut shim = stage
        .sh("setsid sleep 1000 & echo $!; sleep 0.2; exit 0")
        .await;
    shim.exit().await;
    let left: u32 = shim.text().trim().parse().expect("a pid");
    assert!(!is_running(left));
    assert!(children_of(shim.hello.shim_pid).is_empty());
}

#[tokio::test]
async fn a_thousand_orphans_leave_no_zombie() {
    let stage = Stage::new();
    // Each inner shell ends at once and leaves its child to the shim.
    let mut shim = stage
        .sh("i=0; while [ $i -lt 1000 ]; do (: & ); i=$((i+1)); done; echo done; read x")
        .await;
    shim.until_text("done").await;
    let (pid, child) = (shim.hello.shim_pid, shim.hello.child_pid);
    eventually("only the child is left", || children_of(pid) == [child]).await;
}

#[tokio::test]
async fn a_shim_that_is_told_to_end_ends_its_slot() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    kill(shim.hello.shim_pid, Signal::TERM);
    let terminated = ExitReport {
        code: None,
        signal: Some(15),
    };
    assert_eq!(shim.exit().await, terminated);
    eventually("the socket is gone", || !stage.path("test.sock").exists()).await;
    assert_eq!(stage.marks("m").last().unwrap(), "exit signal 15");
}

#[tokio::test]
async fn a_shim_that_is_killed_takes_its_slot_along() {
    let stage = Stage::new();
    let mut shim = stage.launch(&["/bin/cat"]).await;
    kill(shim.hello.shim_pid, Signal::KILL);
    let ended = tokio::time::timeout(PATIENCE, shim.link.next()).await;
    assert!(matches!(ended, Ok(Err(LinkError::Closed))), "{ended:?}");
    let child = shim.hello.child_pid;
    eventually("the child is gone", || !is_running(child)).await;
    // Its socket is dead and its recording may be torn; the next start copes with both.
    let mut again = stage.launch(&["/bin/cat"]).await;
    again.input(1, "back\n");
    again.until_text("back\r\nback\r\n").await;
}
