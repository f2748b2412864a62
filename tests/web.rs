//! `missiond web`, as a program sees it: what it answers, and what it refuses.

mod support;

mod web {
    mod answers;
    mod attacks;
    mod client;
    mod devices;
    mod forged;
    mod generated;
    mod keyboard;
    mod live;
    // Those who answer by other ways than HTTP. This test uses a part of each.
    #[allow(dead_code)]
    #[path = "../mcp/client.rs"]
    mod mcp_client;
    mod page;
    mod page_keyboard;
    #[allow(dead_code)]
    #[path = "../attach/person.rs"]
    mod person;
    mod race;
}
