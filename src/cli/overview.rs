//! The pages of help that name the verbs: what a newcomer needs, and all of them in groups.

use clap::builder::Styles;
use std::fmt::Write;

/// Each verb in one group, in the order in which they are met.
const GROUPS: [(&str, &[&str]); 7] = [
    ("First steps", &["demo", "init", "setup", "doctor"]),
    (
        "The daemon",
        &[
            "up", "down", "upgrade", "run", "reload", "notify", "version",
        ],
    ),
    (
        "Slots",
        &[
            "status",
            "top",
            "web",
            "send",
            "pending",
            "confirm",
            "interrupt",
            "attach",
            "start",
            "stop",
            "restart",
            "adopt",
            "stats",
            "metrics",
        ],
    ),
    (
        "What they do and did",
        &[
            "screen", "history", "search", "logs", "events", "wait", "why", "audit", "replay",
            "timeline", "cost", "link",
        ],
    ),
    ("Tasks and sessions", &["task", "session"]),
    ("Unchecked input", &["keys", "write"]),
    (
        "Rules, and other programs",
        &[
            "config",
            "policy",
            "mcp",
            "completions",
            "man",
            "uninstall",
            "help",
        ],
    ),
];

/// Those that neither need a daemon nor are told about one.
const ALONE: [usize; 2] = [0, GROUPS.len() - 1];

/// Whether this is a verb that has to know which daemon is meant.
pub fn asks_the_daemon(verb: &str) -> bool {
    let groups = GROUPS.iter().enumerate();
    groups
        .filter(|(index, _)| !ALONE.contains(index))
        .any(|(_, (_, verbs))| verbs.contains(&verb))
}

/// What a newcomer needs, in the order in which it is met.
const FIRST: [(&str, &[&str]); 3] = [
    ("Begin", &["demo", "init", "up"]),
    (
        "Every day",
        &[
            "top", "status", "send", "pending", "confirm", "logs", "attach",
        ],
    ),
    ("More", &["policy", "task", "session", "doctor"]),
];

const MORE: &str = "\
All commands: missiond --help. One of them: missiond COMMAND -h, or --help for more.
Without a command, on a terminal: all slots on one screen, or how to begin.";

/// Gives the command the page that names all verbs.
pub fn all(mut command: clap::Command) -> clap::Command {
    // The verb `help` comes with the last touch.
    command.build();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        listing(&command, &GROUPS),
        heading(&command, "Flags of every command"),
    );
    command.help_template(template)
}

/// Gives the command its first page, which fits on a screen.
pub fn first(mut command: clap::Command) -> clap::Command {
    command.build();
    let listing = listing(&command, &FIRST).replace("\n\n", "\n");
    command.help_template(format!("{{about-with-newline}}\n{listing}\n{MORE}"))
}

fn listing(command: &clap::Command, groups: &[(&str, &[&str])]) -> String {
    let mut page = String::new();
    let literal = command.get_styles().get_literal();
    for (title, verbs) in groups {
        let found = verbs
            .iter()
            .filter_map(|verb| command.find_subcommand(verb));
        let _ = writeln!(page, "{}", heading(command, title));
        for verb in found {
            let (name, about) = (verb.get_name(), about(verb));
            let _ = writeln!(page, "  {literal}{name:<11}{literal:#}  {about}");
        }
        page.push('\n');
    }
    page
}

fn heading(command: &clap::Command, title: &str) -> String {
    let styles: &Styles = command.get_styles();
    let header = styles.get_header();
    format!("{header}{title}:{header:#}")
}

fn about(verb: &clap::Command) -> String {
    verb.get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    /// What is left of a line of 80 columns behind the name of a verb.
    const ROOM: usize = 80 - 15;

    #[test]
    fn each_verb_is_in_one_group_and_fits_on_a_line() {
        let mut command = Cli::command();
        command.build();
        let mut listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, verbs)| *verbs)
            .copied()
            .collect();
        let mut verbs: Vec<&str> = command
            .get_subcommands()
            .filter(|verb| !verb.is_hide_set())
            .map(|verb| verb.get_name())
            .collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
        // No list shows the earlier names.
        let shown = |verb: &&clap::Command| !verb.is_hide_set();
        for verb in command.get_subcommands().filter(shown) {
            let about = about(verb);
            assert!(about.len() <= ROOM, "{}: {about}", verb.get_name());
        }
    }
}
