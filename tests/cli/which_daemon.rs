//! Which daemon a command talks to, and what happens when there is none.

use crate::fake::{Home, Reply, text_of};
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
         or make a session, which needs no config: missiond spawn\n"
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
    let _one = home.daemon("one", stats(1));
    let _two = home.daemon("two", stats(2));
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
    let _requests = home.daemon("one", stats(1));
    home.write("a.toml", "[daemon]\nname = \"one\"\n[[slot]]\nname = 7\n");
    home.run(&["stats", "-c", "a.toml"]).exits(0);
    home.write("a.toml", "[daemon]\nname = 7\n");
    let ran = home.run(&["stats", "-c", "a.toml"]).exits(2);
    assert!(ran.stderr.contains("a.toml:2"), "{ran:?}");
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
        (b"hello\n", "no JSON-RPC"),
        (b"", "closed the connection"),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n",
            "not understood",
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"odd \x1b[2J\"}}\n",
            "no JSON-RPC",
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
