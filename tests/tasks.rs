//! Tasks: handed to slots of the real Claude Code, against the scripted endpoint.

mod support;

mod tasks {
    mod crashes;
    mod dispatch;
    mod files;
    mod refusals;
    mod sends;
    mod words;
}
