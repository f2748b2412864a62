//! Times for people: the clock where they are, and the date only on another day.

use crate::fake::{Home, Ran, Reply, status};
use chrono::{DateTime, FixedOffset, Utc};
use missiond::audit::{Audit, Record};
use serde_json::{Value, json};

/// Nine hours east of UTC, in the form that needs no table of time zones.
const HERE: &str = "HERE-9";

fn here(home: &Home, args: &[&str]) -> Ran {
    home.command(args).env("TZ", HERE).output().unwrap().into()
}

fn clock(time: DateTime<Utc>) -> String {
    let offset = FixedOffset::east_opt(9 * 3600).unwrap();
    let (time, now) = (
        time.with_timezone(&offset),
        Utc::now().with_timezone(&offset),
    );
    let today = time.date_naive() == now.date_naive();
    time.format(if today { "%H:%M:%S" } else { "%F %T" })
        .to_string()
}

/// A daemon that answers each request with this time in it.
fn stage(time: DateTime<Utc>) -> Home {
    let home = Home::new();
    home.write("slots.toml", "[daemon]\nlogs = \"logs\"\n");
    let stamp = time.to_rfc3339();
    home.write("logs/coder.log", &format!("{stamp}  state     idle\n"));
    home.write(
        "logs/coder.events.jsonl",
        &format!("{}\n", json!({"seq": 1, "time": stamp})),
    );
    let logs = home.path("logs");
    let record = Record::verdict("coder", "Bash", &json!({"command": "make"}));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let audit = Audit::open(&logs.join("audit.jsonl"), &logs).unwrap();
        audit.write(record).await.unwrap();
    });
    let session = json!({
        "id": "build", "owner": "user", "owner_pid": null, "cols": 80, "rows": 24, "cwd": "/",
        "command": ["make"], "shell": "sh", "created_at": stamp, "ends_at": stamp, "pid": null,
        "is_alive": false, "state": "exited", "exit_code": 0, "signal": null, "last_error": null,
        "uptime": 1, "at_prompt": false, "output_bytes": 0, "dropped_bytes": 0, "memory": null,
        "cpu": null, "read_bytes": null, "written_bytes": null, "log": "/l"
    });
    let turns =
        json!({"turns": [{"role": "user", "text": "hello", "time": stamp}], "left_out": false});
    let _requests = home.daemon("missiond", move |method, _| {
        Reply::Result(match method {
            "history" => turns.clone(),
            "info" => session.clone(),
            _ => json!([status("coder", "idle")]),
        })
    });
    home
}

/// Those that print a time of the stage.
const COMMANDS: [&[&str]; 4] = [
    &["logs", "coder"],
    &["logs"],
    &["history", "coder"],
    &["info", "build"],
];

#[test]
fn a_person_reads_the_clock_where_they_are() {
    let yesterday = Utc::now() - chrono::TimeDelta::days(1);
    for time in [Utc::now(), yesterday] {
        let home = stage(time);
        for command in COMMANDS {
            let shown = here(&home, command).exits(0).stdout;
            assert!(shown.contains(&clock(time)), "{command:?}: {shown}");
            assert!(!shown.contains("+00:00"), "{command:?}: {shown}");
            let is_today = clock(time).len() == 8;
            let year = time.format("%Y-").to_string();
            assert_eq!(shown.contains(&year), !is_today, "{command:?}: {shown}");
        }
    }
}

#[test]
fn an_entry_of_the_audit_has_the_same_time() {
    let home = stage(Utc::now());
    let before = Utc::now().with_timezone(&FixedOffset::east_opt(9 * 3600).unwrap());
    let shown = here(&home, &["audit", "tail"]).exits(0).stdout;
    let time = shown.split(' ').next().unwrap_or_default();
    assert_eq!(time.len(), 8, "{shown}");
    // Written within the last minute, as the clock says there.
    let written = chrono::NaiveTime::parse_from_str(time, "%H:%M:%S").unwrap();
    let apart = (before.time() - written).num_seconds().rem_euclid(86_400);
    assert!(apart < 60, "{shown}");
}

#[test]
fn a_program_reads_rfc_3339() {
    let home = stage(Utc::now());
    for command in COMMANDS {
        let shown = here(&home, &[command, &["--json"]].concat())
            .exits(0)
            .stdout;
        let value: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
        let time = ["time", "created_at"].into_iter().find_map(|key| {
            let time = value.get(key).or_else(|| value.get(0)?.get(key))?;
            DateTime::parse_from_rfc3339(time.as_str()?).ok()
        });
        assert!(time.is_some(), "{command:?}: {shown}");
    }
    let raw = here(&home, &["logs", "coder", "--raw"]).exits(0).stdout;
    assert!(raw.contains("+00:00"), "{raw}");
}
