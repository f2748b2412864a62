//! What holds a slot in check: nobody approves himself, everything is written down, and nothing secret is.

mod support;

mod oversight {
    mod always;
    mod auditing;
    mod background;
    mod beside;
    mod bypassing;
    mod claude;
    mod crowd;
    mod escapes;
    mod explained;
    mod gate;
    mod inside;
    mod painted_questions;
    mod painting;
    mod policy_tools;
    mod self_approval;
    mod silence;
    mod walls;
}
