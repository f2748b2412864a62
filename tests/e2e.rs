//! The real missiond drives the real Claude Code, against the scripted endpoint. Each start of Claude Code
//! costs seconds of processor time, so each test makes much of one daemon.

mod support;

mod e2e {
    mod by_keys;
    mod conversation;
    mod daemons;
    mod dialogs;
    mod fields;
    mod life;
    mod messages;
    mod policy;
    mod trust;
    mod witnesses;
    mod words;
    mod worktree;
}
