//! The real missiond with programs that fail in known ways: restarts, causes, limits, notices, worktrees, and the
//! service manager.

mod support;

mod supervision {
    mod causes;
    mod conversations;
    mod limits;
    mod money;
    mod scripts;
    mod service;
}
