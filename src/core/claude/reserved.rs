//! Flags and variables of Claude Code that a configuration must not set.

/// With one of these Claude Code runs no hooks, and so nothing would hold a tool call back. They are removed from the
/// environment, and naming one in `env` is a configuration error.
pub const HOOKS_OFF: &[&str] = &["CLAUDE_CODE_SAFE_MODE", "CLAUDE_CODE_SIMPLE"];

/// Flags that missiond sets itself, or that would remove the slot from its control, each with the setting to use instead.
const RESERVED: &[(&[&str], &str)] = &[
    (
        &["--permission-mode"],
        "write `mode = \"…\"` in the slot instead",
    ),
    (
        &["--dangerously-skip-permissions"],
        "write `mode = \"bypassPermissions\"` in the slot instead",
    ),
    (
        &["--session-id", "--resume", "-r", "--continue", "-c"],
        "write `session = \"…\"` to take a conversation over, `resume = true` to go on after a restart",
    ),
    (
        &["--fork-session", "--from-pr", "--teleport"],
        "a slot's conversation is chosen by missiond: remove it",
    ),
    (
        &["--setting-sources"],
        "write `project_settings = true` to read the project's own settings too",
    ),
    (
        &["--settings"],
        "missiond's hooks come this way: put settings of yours into ~/.claude/settings.json",
    ),
    (
        &["--bare", "--safe-mode"],
        "it would switch off the hooks that the policy rests on: remove it",
    ),
    (
        &["--ax-screen-reader"],
        "missiond can't read those screens: remove it, and read what a slot says with `missiond logs` and `history`",
    ),
    (
        &[
            "--print",
            "-p",
            "--bg",
            "--background",
            "--cloud",
            "--desktop",
        ],
        "a slot is an interactive session on missiond's own terminal: remove it",
    ),
];

/// What to write instead of a flag that missiond sets itself.
pub fn reserved_flag(arg: &str) -> Option<&'static str> {
    let flag = arg.split_once('=').map_or(arg, |(flag, _)| flag);
    RESERVED
        .iter()
        .find(|(flags, _)| flags.contains(&flag))
        .map(|(_, instead)| *instead)
}
