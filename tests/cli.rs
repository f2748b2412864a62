//! The command line as people and scripts meet it: what it prints, how it ends, what it asks the daemon.

#[path = "cli/bare.rs"]
mod bare;
#[path = "cli/cost.rs"]
mod cost;
#[path = "cli/fake.rs"]
mod fake;
#[path = "cli/following.rs"]
mod following;
#[path = "cli/linking.rs"]
mod linking;
#[path = "cli/living.rs"]
mod living;
#[path = "cli/logs.rs"]
mod logs;
#[path = "cli/names.rs"]
mod names;
#[path = "support/promised.rs"]
mod promised;
#[path = "cli/replaying.rs"]
mod replaying;
#[path = "cli/sending.rs"]
mod sending;
#[path = "cli/setup.rs"]
mod setup;
#[path = "cli/streaming.rs"]
mod streaming;
#[path = "cli/timeline.rs"]
mod timeline;
#[path = "cli/times.rs"]
mod times;
#[path = "cli/upgrade.rs"]
mod upgrade;
#[path = "cli/usage.rs"]
mod usage;
#[path = "cli/verbs.rs"]
mod verbs;
#[path = "cli/which_daemon.rs"]
mod which_daemon;
