//! How quick sessions are, with the real daemon: `cargo bench --bench sessions`. Figures, and no verdict on them.

#[path = "../tests/support/mod.rs"]
mod support;

use missiond::control::client::Client;
use missiond::control::requests::*;
use missiond::core::model::*;
use std::time::{Duration, Instant};
use support::daemon::Daemon;
use support::setup::Setup;

const ROUNDS: usize = 30;
/// Sessions that are there at once when the memory is looked at.
const MANY: usize = 12;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let setup = Setup::new().table("[sessions]\nper_owner = 100\ntotal = 100");
    let daemon = Daemon::start_with(&setup, &["/bin/sh".to_owned()]);
    let socket = daemon.root().join("run/missiond/missiond.sock");
    let mut client = Client::connect(&socket).await.expect("a daemon");
    println!("spawn and close of `cat`");
    let mut spawns = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let id = exec(&mut client, "exec cat").await;
        spawns.push(began.elapsed());
        close(&mut client, id).await;
    }
    show("  until it runs", spawns);
    input(&mut client).await;
    search(&mut client).await;
    memory(&mut client, &daemon).await;
}

/// Until its program runs: nothing is waited for behind that.
async fn exec(client: &mut Client, line: &str) -> String {
    let params = serde_json::json!({"command": line, "yield_ms": 0});
    let params = serde_json::from_value(params).expect("params");
    client
        .call::<UnifiedExec>(params)
        .await
        .expect("a session")
        .session_id
}

async fn close(client: &mut Client, id: String) {
    let params = CloseParams {
        slot: Some(id),
        force: true,
        ..CloseParams::default()
    };
    client.call::<Close>(params).await.expect("it is closed");
}

/// From the request to the program's own answer in the output.
async fn input(client: &mut Client) {
    let id = exec(
        client,
        "stty -echo; while read -r l; do echo \"got $l\"; done",
    )
    .await;
    let mut times = Vec::new();
    let mut from = 0;
    for n in 0..ROUNDS {
        let began = Instant::now();
        let params = WriteParams {
            slot: id.clone(),
            bytes: format!("{n}\n").into_bytes(),
            into_dialog: false,
            keyboard: None,
        };
        client.call::<Write>(params).await.expect("it is written");
        let mut seen = String::new();
        while !seen.contains(&format!("got {n}")) {
            let params = OutputParams {
                slot: id.clone(),
                from: Some(from),
                wait_ms: Some(10_000),
                ..OutputParams::default()
            };
            let answer = client.call::<Output>(params).await.expect("output");
            from = answer.end;
            seen += &answer.text;
        }
        times.push(began.elapsed());
    }
    show("a line to the program and its answer back", times);
    close(client, id).await;
}

async fn search(client: &mut Client) {
    let id = exec(client, "seq -f 'line %g of the output' 1 1000; exec cat").await;
    let params = WaitParams {
        slot: id.clone(),
        states: Vec::new(),
        exit: false,
        quiet_ms: None,
        output: Some("line 1000 of".into()),
        prompt: false,
        timeout_ms: None,
    };
    client.call::<Wait>(params).await.expect("its output");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let params = SearchParams {
            slot: id.clone(),
            pattern: r"line \d*7\d* of".into(),
            limit: Some(1000),
        };
        let found = client.call::<Search>(params).await.expect("matches");
        times.push(began.elapsed());
        assert_eq!(found.len(), 271);
    }
    show("search in 1000 lines", times);
    close(client, id).await;
}

/// The shim, the program, and what the daemon holds for them.
async fn memory(client: &mut Client, daemon: &Daemon) {
    let before = resident(daemon.pid());
    let mut all = 0;
    for _ in 0..MANY {
        let id = exec(client, "exec cat").await;
        let select = Select { slots: vec![id] };
        let status = client
            .call::<Status>(select)
            .await
            .expect("a status")
            .remove(0);
        let pids = [status.pid, status.shim_pid].into_iter().flatten();
        all += pids.map(|pid| resident(pid.cast_signed())).sum::<u64>();
    }
    all += resident(daemon.pid()).saturating_sub(before);
    println!(
        "{MANY} sessions at once: {:.1} MB for each",
        all as f64 / 1e6 / MANY as f64
    );
}

fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

fn show(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: usize| times[(times.len() - 1) * share / 100];
    println!(
        "{what}: {:.1?} in the median, {:.1?} at most",
        at(50),
        at(100)
    );
}
