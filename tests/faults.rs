//! What may go wrong around a daemon, and what must hold through it. The slots are plain programs where that is
//! enough, and the real Claude Code where it matters.

mod support;

mod faults {
    mod asked;
    mod at_work;
    mod entered;
    mod floods;
    mod ground;
    mod hanging;
    mod impostor;
    mod last_word;
    mod leaving;
    mod left_behind;
    mod logs;
    mod once;
    mod orphans;
    mod paths;
    mod policies;
    mod positions;
    mod races;
    mod removed;
    mod seen;
    mod settings;
    mod shells;
    mod shortage;
    mod socket;
    mod stopped;
    mod survival;
    mod taken_over;
}
