//! Which daemon a command talks to, and what happens when there is none.

use crate::fake::{Home, Ran, Reply, text_of};
use serde_json::{Value, json};
use std::os::unix::net::UnixListener;

fn stats(total: usize) -> impl Fn(&str, &Value) -> Reply + Send + Sync {
    move |_, _| {
        let stats = json!({"total": total, "running": 0, "idle": 0, "busy": 0, "stopped": total});
        Reply::Result(stats)
    }
}

#[test]
fn no_daemon_is_3_with_the_command_that_starts_one() {
    let home = Home::new();
    let ran = home.run(&["status"]).exits(3);
    assert_eq!(
        ran.stderr,
        "missiond: no daemon answers\n  \
         write a config and start one with: missiond init && missiond up\n  \
         or make a session, which needs no config: missiond session spawn\n"
    );
    home.write("slots.toml", "");
    let ran = home.run(&["status"]).exits(3);
    assert!(
        ran.stderr
            .ends_with("start one with: missiond up -c slots.toml\n"),
        "{ran:?}"
    );
    let ran = home.run(&["spawn"]).exits(3);
    assert!(
        ran.stderr
            .ends_with("start one with: missiond up -c slots.toml\n"),
        "{ran:?}"
    );
    home.write(".config/missiond/slots.toml", "");
    let ran = home.run(&["status"]).exits(3);
    assert!(
        ran.stderr.ends_with("start one with: missiond up\n"),
        "{ran:?}"
    );
    let error = home.run(&["status", "--json"]).exits(3).error();
    assert_eq!(error["fault"], "no_daemon");
    let error = home
        .run(&["status", "--json", "--socket", "gone.sock"])
        .exits(3)
        .error();
    assert!(
        error["message"].as_str().unwrap().contains("gone.sock"),
        "{error}"
    );
    home.run(&["down"]).exits(3);
}

#[test]
fn the_only_daemon_that_answers_is_found_past_a_dead_socket() {
    let home = Home::new();
    drop(UnixListener::bind(home.socket("dead")).unwrap());
    let _requests = home.daemon("alive", stats(5));
    let ran = home.run(&["stats", "--json"]).exits(0);
    assert_eq!(ran.json()["total"], 5);
}

/// As where the runtime directory is reached over a link.
#[test]
fn a_socket_that_two_paths_lead_to_is_one_daemon() {
    let home = Home::new();
    let _one = home.daemon("one", stats(1));
    std::fs::hard_link(home.socket("one"), home.socket("same")).unwrap();
    let ran = home.run(&["stats", "--json"]).exits(0);
    assert_eq!(ran.json()["total"], 1);
}

#[test]
fn of_several_daemons_one_has_to_be_named() {
    let home = Home::new();
    let _one = home.daemon("one", stats(1));
    let _two = home.daemon("two", stats(2));
    let ran = home.run(&["stats"]).exits(2);
    let two = text_of(&home.socket("two"));
    assert!(ran.stderr.contains(&format!("--socket {two}")), "{ran:?}");
    let ran = home.run(&["stats", "--json", "--socket", &two]).exits(0);
    assert_eq!(ran.json()["total"], 2);
    let from_env = home
        .command(&["stats", "--json"])
        .env("MISSIOND_SOCKET", &two)
        .output();
    assert!(
        String::from_utf8(from_env.unwrap().stdout)
            .unwrap()
            .contains("\"total\":2")
    );
}

#[test]
fn the_config_names_its_daemon() {
    let home = Home::new();
    let _one = home.daemon_of("one", &home.path("b.toml"), stats(1));
    let _two = home.daemon_of("two", &home.path("a.toml"), stats(2));
    home.write("a.toml", "[daemon]\nname = \"two\"\n");
    let own = text_of(&home.socket("one"));
    home.write("b.toml", &format!("[daemon]\nsocket = \"{own}\"\n"));
    let total = |config: &str| {
        home.run(&["stats", "--json", "-c", config]).exits(0).json()["total"].clone()
    };
    assert_eq!(total("a.toml"), 2);
    assert_eq!(total("b.toml"), 1);
    let ran = home.run(&["stats", "-c", "none.toml"]).exits(2);
    assert!(ran.stderr.contains("none.toml"), "{ran:?}");
}

#[test]
fn a_daemon_can_be_reached_while_its_slots_are_being_edited() {
    let home = Home::new();
    let _requests = home.daemon_of("one", &home.path("a.toml"), stats(1));
    home.write("a.toml", "[daemon]\nname = \"one\"\n[[slot]]\nname = 7\n");
    home.run(&["stats", "-c", "a.toml"]).exits(0);
    home.write("a.toml", "[daemon]\nname = 7\n");
    home.run(&["stats", "-c", "a.toml"]).exits(0);
    home.write("b.toml", "[daemon]\nname = 7\n");
    let ran = home.run(&["stats", "-c", "b.toml"]).exits(2);
    assert!(ran.stderr.contains("b.toml:2"), "{ran:?}");
}

#[test]
fn a_config_that_merely_lies_here_is_never_taken() {
    let home = Home::new();
    let nothing = home.run(&["up"]).exits(2);
    assert!(nothing.stderr.contains("missiond init"), "{nothing:?}");
    home.write("slots.toml", "");
    for verb in ["up", "run"] {
        let ran = home.run(&[verb]).exits(2);
        assert!(ran.stderr.contains("missiond up -c slots.toml"), "{ran:?}");
        let ran = home.run(&["status"]).exits(3);
        assert!(ran.stderr.contains("missiond up -c slots.toml"), "{ran:?}");
    }
}

#[test]
fn a_socket_path_that_cannot_be_is_explained() {
    let home = Home::new();
    let long = format!("/{}.sock", "x".repeat(120));
    let ran = home.run(&["status", "--socket", &long]).exits(2);
    assert!(ran.stderr.contains("126 bytes"), "{ran:?}");
}

#[test]
fn a_daemon_that_speaks_nonsense_is_a_failure_and_no_panic() {
    let nonsense: [(&[u8], &str); 4] = [
        (b"hello\n", "not JSON-RPC"),
        (b"", "closed the connection"),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n",
            "not understood",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"odd \x1b[2J\"}}\n",
            "not JSON-RPC",
        ),
    ];
    for (bytes, expected) in nonsense {
        let home = Home::new();
        let _requests = home.daemon("missiond", move |_, _| Reply::Raw(bytes.to_vec()));
        let ran = home.run(&["stats"]).exits(1);
        assert!(ran.stderr.contains(expected), "{ran:?}");
        assert!(!ran.stderr.contains('\u{1b}'), "{ran:?}");
    }
}

#[test]
fn a_line_without_end_is_cut_off() {
    let home = Home::new();
    let endless = vec![b'x'; 9 * 1024 * 1024];
    let _requests = home.daemon("missiond", move |_, _| Reply::Raw(endless.clone()));
    let ran = home.run(&["stats"]).exits(1);
    assert!(ran.stderr.contains("more than 8388608 bytes"), "{ran:?}");
}

#[test]
fn the_version_tells_of_the_daemon_where_there_is_one() {
    let home = Home::new();
    let alone = home.run(&["version", "--json"]).exits(0).json();
    assert_eq!(alone["daemon"], Value::Null);
    let _requests = home.daemon("missiond", stats(0));
    let both = home.run(&["version", "--json"]).exits(0).json();
    assert_eq!(both["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(both["daemon"]["version"], "9.9.9");
}

/// Every verb that asks the daemon something, with enough words to be understood. `attach` and `top` need a terminal, `mcp` a
/// client; `tests/tidy.rs` holds that they connect in the same place, and `tests/mcp` tries `mcp`.
const ASKING: &[&[&str]] = &[
    &["down"],
    &["upgrade"],
    &["reload"],
    &["notify", "test"],
    &["version"],
    &["status"],
    &["web"],
    &["send", "coder", "hello"],
    &["pending"],
    &["confirm", "coder", "yes"],
    &["interrupt", "coder"],
    &["start", "coder"],
    &["stop", "coder"],
    &["restart", "coder"],
    &["adopt", "coder", "7f1f5f0e-6d5c-4a43-9d3f-0d3a5a2d8d11"],
    &["stats"],
    &["metrics"],
    &["screen", "coder"],
    &["history", "coder"],
    &["search", "coder", "word"],
    &["events"],
    &["events", "-f"],
    &["wait", "coder", "--for", "idle"],
    &["why", "coder"],
    &["ask", "coder", "hello"],
    &["submit", "coder", "hello"],
    &["task", "t1"],
    &["task", "list"],
    &["session", "list"],
    &["tasks"],
    &["cancel", "t1"],
    &["spawn"],
    &["exec", "--", "true"],
    &["type", "s1", "hello"],
    &["sessions"],
    &["info", "s1"],
    &["output", "s1"],
    &["follow", "s1"],
    &["clear", "s1"],
    &["resize", "s1", "80", "24"],
    &["signal", "s1", "TERM"],
    &["close", "s1"],
    &["keys", "s1", "enter"],
    &["write", "s1", "x"],
    &["policy", "show", "coder"],
];

/// Those that ask no daemon, or are tried elsewhere.
const OTHERS: &[&str] = &[
    "demo",
    "init",
    "setup",
    "uninstall",
    "doctor",
    "up",
    "run",
    "attach",
    "top",
    "logs",
    "audit",
    "replay",
    "link",
    "cost",
    "timeline",
    "config",
    "mcp",
    "completions",
    "man",
    "help",
];

#[test]
fn every_verb_is_known_to_ask_the_daemon_or_not_to() {
    let help = Home::new().run(&["--help"]).exits(0).stdout;
    let verbs = help.lines().filter_map(|line| {
        let verb = line.strip_prefix("  ")?.split(' ').next()?;
        let is_verb = !verb.is_empty() && verb.chars().all(|c| c.is_ascii_lowercase());
        is_verb.then_some(verb).filter(|verb| *verb != "missiond")
    });
    let verbs: Vec<&str> = verbs.collect();
    assert!(verbs.len() > 35, "{verbs:?}");
    for verb in verbs {
        let asks = ASKING.iter().any(|words| words[0] == verb);
        assert!(asks != OTHERS.contains(&verb), "{verb}");
    }
}

/// A client that names a config talks to the daemon of that config, or says whom it found and sends nothing else.
#[test]
fn no_verb_reaches_the_daemon_of_another_config() {
    let home = Home::new();
    let (one, other) = (home.path("one.toml"), home.path("other.toml"));
    for file in ["one.toml", "other.toml"] {
        home.write(file, "[daemon]\nname = \"same\"\n");
    }
    let requests = home.daemon_of("same", &one, stats(1));
    let (socket, wrong) = (text_of(&home.socket("same")), text_of(&other));
    let flag: &[&str] = &["-c", &wrong];
    let relative: &[&str] = &["-c", "other.toml"];
    let both: &[&str] = &["--socket", &socket, "-c", &wrong];
    let nothing: &[&str] = &[];
    let ways = [
        (flag, None),
        (relative, None),
        (both, None),
        (nothing, Some(("MISSIOND_CONFIG", &wrong))),
        (flag, Some(("MISSIOND_SOCKET", &socket))),
    ];
    for words in ASKING {
        for (flags, variable) in ways {
            let mut command = home.command(&[&words[..1], flags, &words[1..]].concat());
            command.envs(variable);
            let ran = Ran::from(command.output().unwrap()).exits(4);
            for named in [text_of(&one), text_of(&other)] {
                assert!(ran.stderr.contains(&named), "{words:?}: {ran:?}");
            }
            let asked: Vec<String> = requests.try_iter().map(|asked| asked.method).collect();
            assert!(!asked.is_empty(), "{words:?}");
            assert!(
                asked.iter().all(|asked| asked == "ping"),
                "{words:?}: {asked:?}"
            );
        }
    }
}

#[test]
fn a_config_is_reached_by_whatever_path_names_it() {
    let home = Home::new();
    home.write("real/slots.toml", "[daemon]\nname = \"one\"\n");
    std::os::unix::fs::symlink("real", home.path("linked")).unwrap();
    std::os::unix::fs::symlink("real/slots.toml", home.path("link.toml")).unwrap();
    let _requests = home.daemon_of("one", &home.path("real/slots.toml"), stats(1));
    let reaches = |config: &str, code: i32| home.run(&["stats", "-c", config]).exits(code);
    for config in [
        "real/slots.toml",
        "linked/slots.toml",
        "link.toml",
        "real/../link.toml",
    ] {
        reaches(config, 0);
    }
    // A copy under the same name is another config.
    home.write("copy.toml", "[daemon]\nname = \"one\"\n");
    reaches("copy.toml", 4);
    // The daemon of a config that was moved would read it at its old path.
    std::fs::rename(home.path("real/slots.toml"), home.path("real/moved.toml")).unwrap();
    reaches("real/moved.toml", 4);
    reaches("real/slots.toml", 0);
    reaches("linked/slots.toml", 0);
}

#[test]
fn a_daemon_is_found_by_its_config_when_its_name_has_changed() {
    let home = Home::new();
    home.write("a.toml", "[daemon]\nname = \"new\"\n");
    let _requests = home.daemon_of("old", &home.path("a.toml"), stats(5));
    let ran = home.run(&["stats", "--json", "-c", "a.toml"]).exits(0);
    assert_eq!(ran.json()["total"], 5);
    // Also where another daemon has the new name.
    let _other = home.daemon_of("new", &home.path("b.toml"), stats(6));
    let ran = home.run(&["stats", "--json", "-c", "a.toml"]).exits(0);
    assert_eq!(ran.json()["total"], 5);
}

#[test]
fn a_socket_that_is_named_by_flag_beats_a_config_of_the_environment() {
    let home = Home::new();
    let _one = home.daemon_of("one", &home.path("one.toml"), stats(1));
    home.write("two.toml", "[daemon]\nname = \"two\"\n");
    let socket = text_of(&home.socket("one"));
    let stats_of = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.command(&[&["stats", "--json"], arguments].concat());
        command.envs(variables.iter().copied());
        Ran::from(command.output().unwrap())
    };
    let by_flag = stats_of(&["--socket", &socket], &[("MISSIOND_CONFIG", "two.toml")]);
    assert_eq!(by_flag.exits(0).json()["total"], 1);
    let variables = [
        ("MISSIOND_CONFIG", "two.toml"),
        ("MISSIOND_SOCKET", &socket),
    ];
    stats_of(&[], &variables).exits(4);
}
