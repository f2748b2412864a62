//! `run`, `up` and `down` with the daemon itself.

use crate::fake::{Home, answered, text_of};
use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const SLOT: &str = "[[slot]]\nname = \"cat\"\nkind = \"shell\"\ncwd = \".\"\ncommand = [\"cat\"]\n";

/// A home whose daemons are ended with it, however a test ends.
pub struct Living {
    pub home: Home,
    configs: Vec<PathBuf>,
}

impl Living {
    pub fn new() -> Living {
        Living {
            home: Home::new(),
            configs: Vec::new(),
        }
    }

    pub fn config(&mut self, file: &str, daemon: &str) -> String {
        let path = self
            .home
            .write(file, &format!("[daemon]\n{daemon}\n{SLOT}"));
        let text = text_of(&path);
        self.configs.push(path);
        text
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        for config in &self.configs {
            // Most have ended by now.
            let _ = self
                .home
                .command(&["down", "-q", "--yes", "-c"])
                .arg(config)
                .output();
        }
    }
}

fn pid(answer: &Value) -> Pid {
    let pid = answer["pid"].as_i64().and_then(|pid| pid.try_into().ok());
    pid.and_then(Pid::from_raw)
        .unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn up_is_idempotent_and_down_waits_for_the_end() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    let first = home.run(&["up", "-c", &config, "--json"]).exits(0).json();
    assert_eq!(first["started"], true);
    let daemon = pid(&first);
    assert_eq!(
        getsid(Some(daemon)).unwrap(),
        daemon,
        "it has left the terminal's session"
    );
    let second = home.run(&["up", "-c", &config, "--json"]).exits(0).json();
    assert_eq!(
        (&second["started"], &second["pid"]),
        (&Value::Bool(false), &first["pid"])
    );
    let status = home.run(&["status", "--json"]).exits(0).json();
    assert_eq!(status[0]["slot"], "cat");
    assert!(home.path("logs/missiond.log").is_file());
    home.run(&["down"]).exits(0);
    // The kernel frees a lock when its process ends, whether anybody reaps that or not.
    let lock = std::fs::File::open(home.path("logs/.lock")).unwrap();
    assert!(lock.try_lock().is_ok(), "it runs still");
    home.run(&["status"]).exits(3);
    let log = home.run(&["logs", "cat", "-c", &config]).exits(0).stdout;
    assert!(log.contains("started"), "{log}");
}

/// One that is stopped holds the place: nothing else can be started, and nobody should wait for it without end.
#[test]
fn up_says_that_the_daemon_is_stuck_and_its_logs_can_be_read() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    let first = home.run(&["up", "-c", &config, "--json"]).exits(0).json();
    home.run(&["wait", "cat", "--for", "idle"]).exits(0);
    kill_process(pid(&first), Signal::STOP).unwrap();
    let stuck = home.run(&["up", "-c", &config, "--timeout", "300ms"]);
    let socket = text_of(&home.socket("one"));
    let logs = home.run(&["logs", "cat", "-c", &config, "--socket", &socket]);
    kill_process(pid(&first), Signal::CONT).unwrap();
    let stuck = stuck.exits(124);
    assert!(
        stuck.stderr.contains("has not answered for 300ms"),
        "{stuck:?}"
    );
    assert!(logs.exits(0).stdout.contains("started"));
    let second = home.run(&["up", "-c", &config, "--json"]).exits(0).json();
    assert_eq!(second["pid"], first["pid"]);
}

/// What is told as the next step names the daemon as the command before it did.
#[test]
fn status_tells_of_a_config_that_is_not_taken_and_how_to_see_why() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    home.run(&["up", "-c", &config]).exits(0);
    let good = std::fs::read_to_string(&config).unwrap();
    home.write("slots.toml", &format!("{good}half = \n"));
    home.run(&["reload", "-c", &config]).exits(2);
    home.run(&["wait", "cat", "--for", "idle", "-c", &config])
        .exits(0);
    home.run(&["logs", "cat", "-c", &config]).exits(0);
    let told = home.run(&["status", "-c", &config]).exits(0).stdout;
    let last = told.lines().last().unwrap();
    assert!(
        last.starts_with(&format!("the config on the disk is not taken: {config}: ")),
        "{told}"
    );
    assert!(
        last.ends_with(&format!("see: missiond reload -c {config}")),
        "{told}"
    );
    let version = home.run(&["version", "--json"]).exits(0).json();
    assert!(version["daemon"]["config_fault"].is_string(), "{version}");
    let ran = home.run(&["confirm", "cat", "yes", "-c", &config]).exits(4);
    let next = format!("missiond pending -c {config}");
    assert!(ran.stderr.contains(&next), "{ran:?}");
    home.write("slots.toml", &good);
    home.run(&["reload", "-c", &config]).exits(0);
    let told = home.run(&["status"]).exits(0).stdout;
    assert!(!told.contains("not taken"), "{told}");
}

/// The daemon notices by itself, reports it, and goes on with what it had; and it notices the fix.
#[test]
fn a_running_daemon_takes_nothing_that_others_could_have_written() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    home.run(&["up", "-c", &config]).exits(0);
    let chmod = |mode| {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&config, permissions).unwrap();
    };
    let until = |what: &str, fact: &dyn Fn(&str) -> bool| {
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            let told = home.run(&["status"]).exits(0).stdout;
            if fact(&told) {
                return;
            }
            assert!(Instant::now() < end, "{what}: {told}");
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    chmod(0o666);
    let good = std::fs::read_to_string(&config).unwrap();
    let added = "\n[[slot]]\nname = \"dog\"\nkind = \"shell\"\nrole = \"plain\"\ncommand = [\"cat\"]\ncwd = \".\"\n";
    std::fs::write(&config, good.clone() + added).unwrap();
    until("it is reported", &|told| {
        told.contains("not taken") && told.contains("another user could change")
    });
    let refused = home.run(&["reload"]).exits(2);
    let fix = format!("chmod go-w {config}");
    assert!(refused.stderr.contains(&fix), "{refused:?}");
    let told = home.run(&["status"]).exits(0).stdout;
    assert!(told.contains("cat") && !told.contains("dog"), "{told}");
    chmod(0o644);
    until("it is taken", &|told| {
        !told.contains("not taken") && told.contains("dog")
    });
}

#[test]
fn status_tells_of_a_policy_that_is_wider_on_the_disk_and_not_taken() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    let text = std::fs::read_to_string(&config).unwrap();
    let slot = "[[slot]]\nname = \"docs\"\nrole = \"docs\"\ncwd = \".\"\nautostart = false\n";
    home.write("slots.toml", &format!("{text}\n{slot}"));
    home.write("policies/docs.toml", "allow = [\"Bash(ls *)\"]\n");
    home.run(&["up", "-c", &config]).exits(0);
    let status = || home.run(&["status", "-c", &config]).exits(0).stdout;
    assert!(!status().contains("that waits"));
    home.write("policies/docs.toml", "allow = [\"Bash(ls *)\", \"Edit\"]\n");
    let wanted = format!(
        "the policy docs on the disk may allow more, and that waits: missiond reload -c {config}"
    );
    let end = Instant::now() + Duration::from_secs(30);
    while !status().lines().any(|line| line == wanted) {
        assert!(Instant::now() < end, "{}", status());
        std::thread::sleep(Duration::from_millis(50));
    }
    home.run(&["reload", "-c", &config]).exits(0);
    assert!(!status().contains("that waits"));
}

#[test]
fn a_second_daemon_of_the_same_name_or_logs_is_refused() {
    let mut living = Living::new();
    let one = living.config("one.toml", "name = \"one\"");
    let same_name = living.config("two.toml", "name = \"one\"\nlogs = \"elsewhere\"");
    let same_logs = living.config("three.toml", "name = \"three\"");
    let home = &living.home;
    home.run(&["up", "-c", &one]).exits(0);
    let end_it = format!("missiond down --socket {}", text_of(&home.socket("one")));
    for (verb, config, expected) in [
        ("run", &one, "a daemon named one is running already"),
        ("up", &same_name, "a daemon named `one` runs already"),
        ("run", &same_name, "a daemon named one is running already"),
        ("up", &same_logs, "a daemon that logs to"),
    ] {
        let ran = home.run(&[verb, "-c", config]).exits(4);
        assert!(ran.stderr.contains(expected), "{ran:?}");
        assert!(ran.stderr.contains(&one), "{ran:?}");
        assert!(ran.stderr.contains(&end_it), "{ran:?}");
    }
    // Nobody else's `down` ends it.
    home.run(&["down", "-c", &same_name]).exits(4);
    home.run(&["down", "-c", &same_logs]).exits(3);
    home.run(&["write", "cat", "x", "-c", &same_name]).exits(4);
    home.run(&["status", "-c", &one]).exits(0);
    home.run(&["down", "-c", &one]).exits(0);
    home.run(&["down", "-c", &one]).exits(3);
}

#[test]
fn a_daemon_listens_at_the_socket_that_it_is_given() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    let socket = text_of(&home.path("own.sock"));
    let up = ["up", "-c", &config, "--socket", "own.sock", "--json"];
    let answer = home.run(&up).exits(0).json();
    assert_eq!(
        (&answer["started"], &answer["socket"]),
        (&true.into(), &socket.clone().into())
    );
    assert!(!home.socket("one").exists());
    // Its config, its socket and an empty environment all lead to it.
    let own: [&[&str]; 3] = [&["-c", &config], &["--socket", &socket], &[]];
    for flags in own {
        let version = home.run(&[&["version", "--json"], flags].concat()).exits(0);
        let daemon = &version.json()["daemon"];
        assert_eq!(
            (&daemon["pid"], &daemon["socket"]),
            (&answer["pid"], &answer["socket"])
        );
    }
    let again = home.run(&["up", "-c", &config, "--json"]).exits(0).json();
    assert_eq!(
        (&again["started"], &again["pid"]),
        (&false.into(), &answer["pid"])
    );
    let reloaded = home
        .run(&["reload", "-c", &config, "--json"])
        .exits(0)
        .json();
    assert_eq!(reloaded["changes"], serde_json::json!([]));
    // It is one daemon: a second at another socket is refused.
    home.run(&["up", "-c", &config, "--socket", "second.sock"])
        .exits(4);
    home.run(&["down", "-c", &config]).exits(0);
    assert!(!home.path("own.sock").exists());
}

#[test]
fn a_faulty_config_starts_nothing_and_leaves_nothing() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"\n[[slot]]\nname = \"Bad\"");
    let home = &living.home;
    for verb in ["up", "run"] {
        let ran = home.run(&[verb, "-c", &config]).exits(2);
        assert!(ran.stderr.starts_with("missiond: "), "{ran:?}");
        assert!(ran.stderr.contains("slots.toml:4"), "{ran:?}");
    }
    assert!(!home.path("logs").exists());
    assert!(!home.socket("one").exists());
}

#[test]
fn a_log_directory_that_cannot_be_is_explained() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "logs = \"slots.toml/logs\"");
    for verb in ["up", "run"] {
        let ran = living.home.run(&[verb, "-c", &config]).exits(1);
        assert!(ran.stderr.contains("slots.toml/logs"), "{ran:?}");
    }
}

#[test]
fn sessions_whose_daemon_was_killed_are_brought_back() {
    let mut living = Living::new();
    let file = living.home.path(".config/missiond/slots.toml");
    living.configs.push(file);
    let home = &living.home;
    // With nothing left behind it is as ever.
    let ran = home.run(&["up"]).exits(2);
    assert!(ran.stderr.contains("missiond init"), "{ran:?}");
    home.run(&["spawn", "--id", "one", "--", "cat"]).exits(0);
    let up = home.run(&["up", "--json"]).exits(0).json();
    assert_eq!(up["started"], false, "{up}");
    let pid = i32::try_from(up["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    let mut ran = home.run(&["sessions"]);
    while ran.code == Some(0) {
        ran = home.run(&["sessions"]);
    }
    let ran = ran.exits(3);
    assert!(ran.stderr.contains("sessions live on"), "{ran:?}");
    assert!(ran.stderr.contains("missiond up"), "{ran:?}");
    let up = home.run(&["up", "--json"]).exits(0).json();
    assert_eq!(up["started"], true, "{up}");
    let info = home.run(&["info", "one", "--json"]).exits(0).json();
    assert_eq!(info["is_alive"], true, "{info}");
    home.run(&["close", "one"]).exits(0);
    home.run(&["down"]).exits(0);
}

#[test]
fn a_session_needs_no_config_and_no_daemon_before_it() {
    let mut living = Living::new();
    let file = living.home.path(".config/missiond/slots.toml");
    living.configs.push(file.clone());
    let home = &living.home;
    let ran = home
        .run(&["exec", "--yield", "20s", "--", "echo", "hello"])
        .exits(0);
    assert_eq!(ran.stdout, "hello\n");
    assert!(
        ran.stderr.contains("a daemon for sessions was started"),
        "{ran:?}"
    );
    let made = home.run(&["spawn", "--id", "one", "--", "cat"]).exits(0);
    assert_eq!((made.stdout.trim_end(), made.stderr.as_str()), ("one", ""));
    let before = home.run(&["version", "--json"]).exits(0).json();
    // A config that comes later is taken up, and nothing has to be started again.
    home.write(".config/missiond/slots.toml", SLOT);
    home.run(&["reload"]).exits(0);
    let up = home.run(&["up", "--json"]).exits(0).json();
    assert_eq!(up["started"], false);
    assert_eq!(before["daemon"]["pid"], up["pid"], "{before}");
    let status = home.run(&["status", "--json"]).exits(0).json();
    assert_eq!(status[0]["slot"], "cat");
    home.run(&["info", "one"]).exits(0);
    home.run(&["down"]).exits(4);
    home.run(&["down", "--yes"]).exits(0);
}

#[test]
fn down_asks_before_it_ends_sessions_and_a_script_says_yes() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    home.run(&["up", "-c", &config]).exits(0);
    for id in ["first", "second"] {
        let spawn = ["spawn", "-c", &config, "--id", id, "--", "sleep", "1000"];
        home.run(&spawn).exits(0);
    }
    let down = ["down", "-c", &config];
    let refused = home.run(&down).exits(4);
    assert!(refused.stderr.contains("2 running sessions"), "{refused:?}");
    for flag in ["--yes", "--keep"] {
        let step = format!("missiond down -c {config} {flag}");
        assert!(refused.stderr.contains(&step), "{refused:?}");
    }
    let error = home.run(&[&down[..], &["--json"]].concat()).exits(4);
    assert_eq!(error.error()["fault"], "refused");
    for no in ["n\n", "\n", "nonsense\n", "\u{4}"] {
        let (said, code) = answered(home, &down, "go on? [y/N]", no);
        assert_eq!(code, 4, "{no:?}: {said}");
        assert!(said.contains("2 running sessions"), "{said}");
    }
    let alive = home.run(&["sessions", "-c", &config, "--json"]).exits(0);
    let alive = alive.json();
    let alive = alive.as_array().unwrap().iter();
    assert_eq!(
        alive.filter(|session| session["is_alive"] == true).count(),
        2
    );

    // Those that are kept are named; the next daemon has them.
    let kept = home
        .run(&[&down[..], &["--keep", "--json"]].concat())
        .exits(0);
    assert_eq!(
        kept.json()["kept"]["sessions"],
        serde_json::json!(["first", "second"])
    );
    home.run(&["up", "-c", &config]).exits(0);
    let (said, code) = answered(home, &down, "go on? [y/N]", "y\n");
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("ended while at work: 2 running sessions"),
        "{said}"
    );
    // Nothing is at work now, so there is no question.
    home.run(&["up", "-c", &config]).exits(0);
    let ran = home.run(&down).exits(0);
    assert_eq!(ran.stdout, "one is down\n");
    home.run(&["up", "-c", &config]).exits(0);
    home.run(&["spawn", "-c", &config, "--", "sleep", "1000"])
        .exits(0);
    home.run(&[&down[..], &["--yes"]].concat()).exits(0);
}

#[test]
fn up_says_which_slots_have_failed_and_why() {
    let mut living = Living::new();
    let failing = |name: &str, command: &str, more: &str| {
        format!(
            "[[slot]]\nname = \"{name}\"\nkind = \"shell\"\ncwd = \".\"\ncommand = {command}\n{more}\n"
        )
    };
    let slots = [
        failing("missing", "[\"/no/such/program\"]", ""),
        failing("ends", "[\"sh\", \"-c\", \"exit 3\"]", ""),
        failing(
            "never",
            "[\"sh\", \"-c\", \"exit 3\"]",
            "restart = \"never\"",
        ),
        failing("off", "[\"/no/such/program\"]", "autostart = false"),
        failing("done", "[\"true\"]", ""),
    ];
    let config = living.config("slots.toml", &format!("name = \"one\"\n{}", slots.concat()));
    let home = &living.home;
    let ran = home.run(&["up", "-c", &config]).exits(1);
    assert!(!ran.stdout.contains("is up"), "{ran:?}");
    assert!(ran.stderr.contains("3 of 6 slots failed"), "{ran:?}");
    for why in [
        "missing: ",
        "/no/such/program",
        "ends: ",
        "never: ",
        "exit 3",
    ] {
        assert!(ran.stderr.contains(why), "{why}: {ran:?}");
    }
    for fine in ["off: ", "done: ", "cat: "] {
        assert!(!ran.stderr.contains(fine), "{fine}: {ran:?}");
    }
    // Again, with the same answer for programs.
    let ran = home.run(&["up", "-c", &config, "--json"]).exits(1);
    let answer = ran.json();
    assert_eq!(answer["started"], false);
    let failed = answer["failed"].as_array().unwrap();
    let names: Vec<&Value> = failed.iter().map(|failed| &failed["slot"]).collect();
    assert_eq!(names, ["ends", "missing", "never"], "{answer}");
    assert!(failed.iter().all(|failed| failed["why"] != ""), "{answer}");
    home.run(&["status", "-c", &config]).exits(0);
    // `doctor` sees the same slots, as long as they fail.
    let found = home.run(&["doctor", "-c", &config, "--json"]).exits(1);
    let found = found.json();
    let checks = found["checks"].as_array().unwrap().iter();
    let slots: Vec<&Value> = checks.filter(|check| check["check"] == "slot").collect();
    for (found, name) in slots.iter().zip(["ends", "missing", "never"]) {
        let detail = found["detail"].as_str().unwrap();
        assert!(detail.starts_with(&format!("{name} fails: ")), "{found}");
        assert_eq!(found["health"], "fail", "{found}");
        let fix = found["fix"].as_str().unwrap();
        assert!(fix.ends_with(&format!("missiond start {name}")), "{found}");
    }
    assert_eq!(slots.len(), 3, "{found}");
}

/// The line that says why stands whole in what `up` prints, however long it is, and wherever the slot's terminal wrapped it.
#[test]
fn up_shows_the_whole_cause() {
    let mut living = Living::new();
    let cause = format!(
        "Error: Cannot find module '/opt/{}/cli.js'",
        "deep/".repeat(40)
    );
    let places = "    at Function._load (node:internal/modules/cjs/loader:1225:15)\n".repeat(12);
    let script = format!(
        "#!/bin/sh\ncat <<'END'\nnode:internal/modules/cjs/loader:1225\n{cause}\n{places}  code: 'MODULE_NOT_FOUND'\n}}\n\n\
         Node.js v20.1.0\nEND\nexit 1\n"
    );
    let program = living.home.write("program", &script);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    living.home.write("policies/coder.toml", "");
    let slot = |name: &str, kind: &str| {
        format!(
            "[[slot]]\nname = \"{name}\"\nrole = \"coder\"\nkind = \"{kind}\"\ncwd = \".\"\ncols = 80\n\
             command = [\"{}\"]\n",
            program.display()
        )
    };
    let slots = slot("plain", "shell") + &slot("asked", "claude");
    let config = living.config("slots.toml", &format!("name = \"one\"\n{slots}"));
    let ran = living.home.run(&["up", "-c", &config]).exits(1);
    assert_eq!(ran.stderr.matches(&cause).count(), 2, "{ran:?}");
    assert!(ran.stderr.contains("Node.js v20.1.0"), "{ran:?}");
    assert!(!ran.stderr.contains("_load"), "{ran:?}");
    // `doctor` says the same of the one that can be asked for its version.
    let found = living.home.run(&["doctor", "-c", &config]).exits(1);
    assert!(found.stdout.contains(&cause), "{found:?}");
}

/// A program that is found and runs, and ends only after a while, before it has shown an input box.
#[test]
fn up_waits_until_a_slot_has_shown_that_it_works() {
    let mut living = Living::new();
    let version = "case \"$*\" in *--version*) echo '2.1.325 (Claude Code)'; exit;; esac";
    let script = format!("#!/bin/sh\n{version}\nsleep 2\nexit 1\n");
    let claude = living.home.write("claude", &script);
    std::fs::set_permissions(&claude, std::fs::Permissions::from_mode(0o755)).unwrap();
    living.home.write("policies/coder.toml", "");
    let slot = format!(
        "[[slot]]\nname = \"slow\"\nrole = \"coder\"\ncwd = \".\"\ncommand = [\"{}\"]\n",
        claude.display()
    );
    let config = living.config("slots.toml", &format!("name = \"one\"\n{slot}"));
    let ran = living.home.run(&["up", "-c", &config]).exits(1);
    assert!(ran.stderr.contains("1 of 2 slots failed"), "{ran:?}");
    assert!(ran.stderr.contains("slow: "), "{ran:?}");
}

/// As the logs of slots do.
#[test]
fn the_log_of_the_daemon_begins_again_after_it_was_removed() {
    let mut living = Living::new();
    let config = living.config("slots.toml", "name = \"one\"");
    let home = &living.home;
    home.run(&["up", "-c", &config]).exits(0);
    let log = home.path("logs/missiond.log");
    for round in ["first", "second"] {
        std::fs::remove_file(&log).unwrap();
        let end = Instant::now() + Duration::from_secs(30);
        while !log.exists() {
            assert!(Instant::now() < end, "{round}");
            std::thread::sleep(Duration::from_millis(20));
        }
        let text = std::fs::read_to_string(&config).unwrap();
        let more = SLOT.replace("\"cat\"\nkind", &format!("\"{round}\"\nkind"));
        home.write("slots.toml", &format!("{text}\n{more}"));
        home.run(&["reload", "-c", &config]).exits(0);
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(said.contains(&format!("slot {round}: added")), "{said}");
    }
    let mode = log.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
