//! The first page of help: the verbs in groups, since fifty of them in one list are read by nobody.

use clap::builder::Styles;
use std::fmt::Write;

/// Each verb in one group, in the order in which they are met.
const GROUPS: [(&str, &[&str]); 8] = [
    ("First steps", &["demo", "init", "doctor"]),
    (
        "The daemon",
        &["up", "down", "run", "reload", "notify", "version"],
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
    (
        "Tasks, for whoever is free",
        &["ask", "submit", "task", "tasks", "cancel"],
    ),
    (
        "Sessions, any program in a terminal",
        &[
            "spawn", "exec", "type", "sessions", "info", "output", "follow", "clear", "resize",
            "signal", "close",
        ],
    ),
    ("Unchecked input", &["keys", "write"]),
    (
        "Rules, and other programs",
        &["config", "policy", "mcp", "completions", "man", "help"],
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

/// Gives the command its first page.
pub fn grouped(mut command: clap::Command) -> clap::Command {
    // The verb `help` comes with the last touch.
    command.build();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        listing(&command),
        heading(&command, "Flags of every command"),
    );
    command.help_template(template)
}

fn listing(command: &clap::Command) -> String {
    let mut page = String::new();
    let literal = command.get_styles().get_literal();
    for (title, verbs) in GROUPS {
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
            .map(|verb| verb.get_name())
            .collect();
        listed.sort_unstable();
        verbs.sort_unstable();
        assert_eq!(listed, verbs);
        for verb in command.get_subcommands() {
            let about = about(verb);
            assert!(about.len() <= ROOM, "{}: {about}", verb.get_name());
        }
    }
}
