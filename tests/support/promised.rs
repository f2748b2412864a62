//! What every version promises of its JSON.

/// The keys of a slot's status.
pub const STATUS: [&str; 15] = [
    "slot",
    "role",
    "state",
    "since",
    "started_at",
    "pid",
    "restarts",
    "session_id",
    "task_id",
    "cwd",
    "dialog",
    "gate",
    "last_error",
    "owner",
    "log",
];
