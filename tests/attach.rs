//! A person at a real terminal, attached to the slots of a real daemon.

mod support;

mod attach {
    mod asked;
    mod claude;
    mod dashboard;
    mod endings;
    mod harmless;
    mod keys;
    mod person;
    mod recordings;
    mod screens;
    mod several;
    mod sizes;
    mod watching;
}
