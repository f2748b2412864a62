//! Rules that answer in a person's place.

use super::words::on_make_pipe;
use crate::support::daemon::Daemon;
use crate::support::setup::Setup;

const POLICY: &str = r#"
allow = ["Bash(mkfifo *)"]
deny = ["Bash(mkfifo *secret*)"]
deny_reason = "Leave the secrets alone."
"#;

#[test]
fn rules_allow_and_deny_by_themselves() {
    let setup = Setup::new().slot("coder").policy("coder", POLICY);
    let Some(daemon) = Daemon::start(&setup) else {
        return;
    };
    daemon.wait_state("coder", "idle");

    let pipe = daemon.cwd("coder").join("harmless");
    on_make_pipe(&daemon, "make it", &pipe, "It is made.");
    let answer = daemon.cmd(&["send", "coder", "make it"]).expect(0);
    assert_eq!(answer.text(), "It is made.");
    assert!(pipe.exists());

    let secret = daemon.cwd("coder").join("secret");
    on_make_pipe(&daemon, "make the other", &secret, "I could not.");
    let answer = daemon.cmd(&["send", "coder", "make the other"]).expect(0);
    assert_eq!(answer.text(), "I could not.");
    assert!(!secret.exists());
    let requests = daemon.endpoint.requests();
    let told = requests.iter().any(|request| {
        request
            .body
            .to_string()
            .contains("Leave the secrets alone.")
    });
    assert!(told, "the model was told why");

    let log = daemon.log("coder");
    for text in ["Bash(mkfifo *)", "Bash(mkfifo *secret*)"] {
        assert!(log.contains(text), "the rule {text} in {log}");
    }
    let audit = daemon.logged("audit.jsonl");
    assert!(audit.contains("allow") && audit.contains("deny"), "{audit}");
}
