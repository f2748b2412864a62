//! The crate inside another program: this test is the program.

mod support;

mod library {
    mod hanging;
    mod replacing;
}

use futures_util::StreamExt;
use missiond::core::model::{EventKind, Fault, SpawnParams};
use missiond::core::policy::{Ask, Decision, PermissionPolicy, Verdict};
use missiond::core::queue::plan::{Job, Run, Work};
use missiond::embed::{Heard, Options, Supervisor};
use std::collections::BTreeMap;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// In a directory that is made for it, since it must be this user's alone.
fn options(directory: &Path) -> Options {
    Options::in_directory(directory.join("d"))
        .expect("a directory of its own")
        .program(env!("CARGO_BIN_EXE_missiond"))
}

fn directory() -> tempfile::TempDir {
    // Short, since the path of a socket has at most 107 bytes.
    tempfile::Builder::new()
        .prefix("md")
        .tempdir()
        .expect("a directory")
}

fn shell(script: &str) -> SpawnParams {
    SpawnParams {
        command: ["sh", "-c", script].map(str::to_owned).to_vec(),
        ..SpawnParams::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_run_in_parallel_and_events_tell_of_them() {
    let directory = directory();
    let supervisor = Supervisor::start(options(directory.path()))
        .await
        .expect("it starts");
    let mut events = supervisor.events().await.expect("events");
    let pipe = directory.path().join("pipe");
    let (write, read) = (
        format!("mkfifo {0}; echo hello > {0}", pipe.display()),
        format!(
            "until [ -p {0} ]; do sleep 0.02; done; cat {0}",
            pipe.display()
        ),
    );
    let writer = supervisor.open(shell(&write)).await.expect("a session");
    let reader = supervisor.open(shell(&read)).await.expect("a session");
    assert_eq!(reader.wait().await.expect("its end"), Some(0));
    assert_eq!(reader.output().await.expect("its output").trim(), "hello");
    writer.wait().await.expect("its end");
    let status = supervisor.status(writer.id()).await.expect("its status");
    assert_eq!(status.slot, writer.id());
    loop {
        let Some(Heard::Event(event)) = events.next().await else {
            panic!("no event tells of the end");
        };
        if let (EventKind::Exit { code, .. }, Some(slot)) = (&event.what, &event.slot)
            && slot == writer.id()
        {
            assert_eq!(*code, Some(0));
            break;
        }
    }
    let ended = supervisor.exec("echo hi; exit 4").await.expect("it runs");
    assert_eq!((ended.exit_code, ended.output.trim()), (Some(4), "hi"));
    let unknown = supervisor
        .ask("@nobody", "hello")
        .await
        .expect_err("nobody is there");
    assert_eq!(unknown.fault, Fault::Usage);
    a_shell_that_says_when_it_is_done(&supervisor).await;
    tasks(&supervisor, directory.path()).await;
    supervisor.shutdown().await.expect("it ends");
}

async fn a_shell_that_says_when_it_is_done(supervisor: &Supervisor) {
    let bash = SpawnParams {
        command: vec!["bash".to_owned()],
        ..SpawnParams::default()
    };
    let shell = supervisor.open(bash).await.expect("a session");
    let failed = shell.run("echo no; false").await.expect("it runs");
    assert_eq!(
        (failed.output.as_deref(), failed.exit_code),
        (Some("no\n"), Some(1))
    );
    shell
        .type_line("echo ready; read -r x; echo \"<$x>\"")
        .await
        .expect("it is typed");
    // What comes before `read` has the terminal would be for readline.
    shell.wait_for("^ready$").await.expect("a line");
    shell.write("words\r").await.expect("it is written");
    assert_eq!(shell.wait_for("^<").await.expect("a line"), "<words>");
    assert!(shell.info().await.expect("it is known").is_alive);
    let id = shell.id().to_owned();
    shell.close().await.expect("it ends");
    let gone = supervisor.session(&id).info().await;
    assert_eq!(gone.expect_err("it is gone").fault, Fault::Usage);
}

async fn tasks(supervisor: &Supervisor, directory: &Path) {
    let job = |name: &str, line: &str, needs: Vec<usize>| Job {
        name: name.to_owned(),
        work: Work::Commands {
            lines: vec![line.to_owned()],
            cwd: directory.to_owned(),
            env: BTreeMap::new(),
        },
        timeout: None,
        needs,
        retries: 0,
    };
    let jobs = vec![
        job("a", "touch made", vec![]),
        job("b", "test -e made", vec![0]),
    ];
    let run = Run::new(jobs, 2, false);
    let ended = supervisor
        .run_tasks(run, CancellationToken::new(), |_, _, _| {})
        .await;
    assert!((0..2).all(|place| ended.report(place).is_some_and(|report| report.success)));
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_outlive_a_supervisor_that_leaves_and_end_with_one_that_shuts_down() {
    let directory = directory();
    let first = Supervisor::start(options(directory.path()))
        .await
        .expect("it starts");
    let id = first
        .spawn(shell("read x; echo got-$x"))
        .await
        .expect("a session");
    let status = first.status(&id).await.expect("its status");
    let pid = status.pid.expect("it runs");
    first.leave().await.expect("it ends");
    let second = Supervisor::start(options(directory.path()))
        .await
        .expect("it starts");
    let status = second.status(&id).await.expect("its status");
    assert_eq!(status.pid, Some(pid));
    second.shutdown().await.expect("it ends");
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a pid");
    assert!(
        rustix::process::test_kill_process(pid).is_err(),
        "it still runs"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_daemon_that_runs_is_used_and_goes_on_else_one_is_started_here() {
    let directory = directory();
    let first = Supervisor::connect_or_start(options(directory.path()))
        .await
        .expect("it starts");
    assert!(first.is_embedded());
    let second = Supervisor::connect_or_start(options(directory.path()))
        .await
        .expect("it connects");
    assert!(!second.is_embedded());
    let mut events = second.events().await.expect("events");
    let id = second.spawn(shell("exit 3")).await.expect("a session");
    loop {
        let heard = events.next().await.expect("an event");
        if let Heard::Event(event) = heard
            && let (EventKind::Exit { code, .. }, Some(slot)) = (&event.what, &event.slot)
            && *slot == id
        {
            assert_eq!(*code, Some(3));
            break;
        }
    }
    assert_eq!(first.status(&id).await, second.status(&id).await);
    let refused = second.set_policy(Denies).await.expect_err("not from here");
    assert_eq!(refused.fault, Fault::Refused);
    let with_policy = options(directory.path()).policy(Denies);
    let refused = Supervisor::connect_or_start(with_policy).await;
    assert!(refused.is_err_and(|error| error.to_string().contains("policy")));
    // It is not this handle's to end.
    second.shutdown().await.expect("it lets go");
    assert_eq!(first.statuses().await.expect("it lives"), []);
    first.set_policy(Denies).await.expect("it is taken");
    first.remove_policy().await.expect("it is removed");
    first.shutdown().await.expect("it ends");
}

struct Denies;

impl PermissionPolicy for Denies {
    fn decide(&self, _: &Ask) -> Verdict {
        Verdict {
            decision: Decision::Deny,
            rule: None,
            why: "this program denies everything".to_owned(),
        }
    }
}

#[test]
fn what_is_missing_is_said_and_a_runtime_is_all_that_a_blocking_program_needs() {
    let directory = directory();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let nowhere = options(directory.path()).program("/no/such/program");
    let error = runtime
        .block_on(Supervisor::start(nowhere))
        .expect_err("no program");
    assert!(error.to_string().contains("missiond program"), "{error}");
    let supervisor = runtime
        .block_on(Supervisor::start(options(directory.path())))
        .expect("it starts");
    let again = runtime.block_on(Supervisor::start(options(directory.path())));
    assert!(again.is_err(), "two in one place");
    let ended = runtime
        .block_on(supervisor.exec("exit 7"))
        .expect("it runs");
    assert_eq!(ended.exit_code, Some(7));
    runtime.block_on(supervisor.shutdown()).expect("it ends");
}
