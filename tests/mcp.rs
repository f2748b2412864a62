//! `missiond mcp`, as a client sees it and as the real Claude Code uses it.

mod support;

mod mcp {
    mod client;
    mod leading;
    mod tools;
}
