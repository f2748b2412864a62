//! How people are called: by a webhook, by ntfy, by Slack. The servers are stand-ins on loopback, and so is Claude Code.

#![cfg(feature = "push")]

mod support;

mod notify {
    mod answers;
    mod channels;
    mod ntfy;
    pub mod stand_in;

    use crate::support::daemon::Daemon;
    use crate::support::setup::Setup;
    use serde_json::Value;
    use stand_in::Server;
    use std::path::Path;

    /// What the stand-in of Claude Code answers with a call that needs a person.
    const DEPLOY: &str = "Run ./deploy.sh and tell me what it says.";

    /// A daemon with a slot that can ask something.
    pub fn coder(notify: &str) -> Daemon {
        let command = [env!("CARGO_BIN_EXE_missiond"), "stand-in"].map(str::to_owned);
        let daemon = Daemon::start_with(&Setup::new().slot("coder").table(notify), &command);
        daemon.wait_state("coder", "idle");
        daemon
    }

    /// A webhook alone.
    pub fn calls_by(webhook: &Server, after: &str, more: &str) -> String {
        let url = webhook.url("/hidden-path");
        format!("[notify]\nnotify_after = \"{after}\"\n{more}[notify.webhook]\nurl = \"{url}\"\n")
    }

    /// Makes the slot ask, and gives its dialog.
    pub fn ask(daemon: &Daemon) -> Value {
        daemon.cmd(&["send", "coder", DEPLOY]).expect(5);
        daemon.wait_dialog("coder")
    }

    /// All that the daemon has written: its logs, its state, its own output and its events.
    pub fn everything_written(daemon: &Daemon) -> String {
        let mut text = daemon.cmd(&["events"]).expect(0).stdout;
        for place in ["logs", "state", "run"] {
            collect(&daemon.root().join(place), &mut text);
        }
        text + &std::fs::read_to_string(daemon.root().join("daemon.stderr")).expect("a file")
    }

    fn collect(place: &Path, text: &mut String) {
        for entry in std::fs::read_dir(place).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                collect(&path, text);
            } else if path.is_file() {
                let bytes = std::fs::read(&path).expect("a file");
                text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }
}
