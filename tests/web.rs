//! `missiond web`, as a program sees it: what it answers, and what it refuses.

mod support;

mod web {
    mod answers;
    mod attacks;
    mod client;
    mod devices;
    mod generated;
    mod keyboard;
    mod live;
    mod page;
    mod page_keyboard;
    mod race;
}
