//! The policy of a program is replaced and removed while its slots run, on the real Claude Code.

use super::hanging::{confirm_no, lay_out};
use crate::support::PINNED;
use crate::support::claude_code::claude;
use crate::support::setup::cwd;
use missiond::core::model::Fault;
use missiond::core::policy::{Ask, Decision, PermissionPolicy, Verdict};
use missiond::embed::{Options, Supervisor};
use missiond::lab::rehearsal::{Endpoint, Home, HomeOptions, Step};
use serde_json::json;
use std::path::Path;

struct Always(Decision);

impl PermissionPolicy for Always {
    fn decide(&self, _: &Ask) -> Verdict {
        Verdict {
            decision: self.0,
            rule: None,
            why: format!("this program says {}", self.0.word()),
        }
    }
}

/// Has Claude Code make a file; whether it was made, and how the message ended.
async fn makes(
    supervisor: &Supervisor,
    endpoint: &Endpoint,
    root: &Path,
    name: &str,
) -> (bool, Result<String, Fault>) {
    let input = json!({"command": format!("touch {name}"), "description": "Makes a file"});
    let message = format!("Make the file {name}");
    endpoint.on(
        &message,
        vec![Step::tool("Bash", input), Step::text("So be it.")],
    );
    let sent = supervisor.send("a", &message).await;
    let is_made = cwd(root, "a").join(name).exists();
    (is_made, sent.map_err(|error| error.fault))
}

/// The same call is judged by the policy that is in force then, each time.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_judged_by_the_policy_that_is_set_then() {
    let Some(command) = claude(PINNED) else {
        return;
    };
    let directory = crate::directory();
    let root = directory.path().join("d");
    missiond::os::paths::ensure_private_dir(&root).expect("a directory");
    let endpoint = Endpoint::start().expect("an endpoint");
    let home = Home::create(&root, &HomeOptions::default()).expect("a home");
    lay_out(&root, &home, &endpoint, &command);
    let options = Options::in_directory(&root)
        .expect("a config")
        .program(env!("CARGO_BIN_EXE_missiond"));
    let supervisor = Supervisor::with_policy(options, Always(Decision::Deny))
        .await
        .expect("it starts");
    let answer = Ok("So be it.".to_owned());
    let denied = makes(&supervisor, &endpoint, &root, "first").await;
    assert_eq!(denied, (false, answer.clone()));

    let allows = Always(Decision::Allow);
    supervisor.set_policy(allows).await.expect("it is taken");
    let allowed = makes(&supervisor, &endpoint, &root, "second").await;
    assert_eq!(allowed, (true, answer.clone()));

    // The file of the role has no rules, and asks.
    supervisor.remove_policy().await.expect("it is removed");
    let asked = makes(&supervisor, &endpoint, &root, "third").await;
    assert_eq!(asked, (false, Err(Fault::NeedsPerson)));
    confirm_no(&supervisor).await;

    let denies = Always(Decision::Deny);
    supervisor.set_policy(denies).await.expect("it is taken");
    let denied = makes(&supervisor, &endpoint, &root, "fourth").await;
    assert_eq!(denied, (false, answer));
    supervisor.shutdown().await.expect("it ends");
}
