//! A slot's environment: the daemon's, without the variables of the daemon's own surroundings.

use crate::core::claude::HOOKS_OFF;
use crate::core::settings::SlotConfig;
use crate::os::allocator;
use std::collections::BTreeMap;
use std::path::Path;

/// Variables to remove, by their whole name.
pub const LEFT_OUT: &[&str] = &[
    // Set by Claude Code for the commands that it runs: with these a slot would consider itself a part of the session
    // that started the daemon.
    "AI_AGENT",
    "CLAUDECODE",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_MESSAGING_SOCKET",
    "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SESSION_KIND",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_JOB_DIR",
    "CLAUDE_PID",
    // From the service manager that started the daemon.
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "MAINPID",
    "MANAGERPID",
    "NOTIFY_SOCKET",
    "SYSTEMD_EXEC_PID",
    // From the terminal that started the daemon; a slot has its own terminal.
    "COLUMNS",
    "LINES",
    "STY",
    "TERMCAP",
    "TERMINAL_EMULATOR",
    "VTE_VERSION",
    "WINDOW",
    "WINDOWID",
    "WT_SESSION",
];

/// Prefixes of variables to remove.
pub const LEFT_OUT_PREFIXES: &[&str] = &[
    "CLAUDE_BG_",
    "CLAUDE_BRIDGE_",
    "CLAUDE_PTY_",
    "ITERM_",
    "KITTY_",
    "LC_TERMINAL",
    "LISTEN_",
    "MISSIOND_",
    "TERM_PROGRAM",
    "TERM_SESSION_",
    "TMUX",
    "VSCODE_",
    "WATCHDOG_",
    "WEZTERM_",
    "ZELLIJ",
];

/// Disables the screens for screen readers, which have no input box and no frames and can't be read. They take
/// precedence over the user's own settings.
pub const SCREENS_AS_DRAWN: [(&str, &str); 2] =
    [("CLAUDE_AX_SCREEN_READER", "0"), ("INK_SCREEN_READER", "0")];

/// The environment of this process. Variables that are not UTF-8 are left out, since a slot can't get them; so are the
/// settings of the daemon's allocator.
pub fn process_environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name != allocator::VARIABLE)
        .collect()
}

/// The whole environment of a slot's program, sorted by name.
pub fn environment(
    slot: &SlotConfig,
    socket: &Path,
    daemon: impl IntoIterator<Item = (String, String)>,
) -> Vec<(String, String)> {
    let passes = |name: &str| match slot.env_clear {
        true => slot.env_pass.iter().any(|pass| pass == name),
        false => !is_left_out(name),
    };
    let mut env: BTreeMap<String, String> = daemon
        .into_iter()
        .filter(|(name, _)| passes(name) && !HOOKS_OFF.contains(&name.as_str()))
        .collect();
    env.insert("TERM".into(), "xterm-256color".into());
    env.insert("COLORTERM".into(), "truecolor".into());
    env.extend(slot.env.clone());
    let drawn = SCREENS_AS_DRAWN.map(|(name, value)| (name.to_owned(), value.to_owned()));
    env.extend(drawn);
    // Set last: a slot must not consider itself another slot, nor talk to another daemon by accident.
    env.insert("MISSIOND_SLOT".into(), slot.name.clone());
    env.insert("MISSIOND_SOCKET".into(), socket.display().to_string());
    env.into_iter().collect()
}

/// Tells whether a variable belongs to the surroundings of a process, and not to the programs that it starts.
pub fn is_left_out(name: &str) -> bool {
    LEFT_OUT.contains(&name)
        || LEFT_OUT_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}
