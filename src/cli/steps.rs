//! The next steps that a person is told. Typed as they stand, they must reach the daemon that the command before
//! them has reached. Pure.

use crate::cli::flags::Flags;
use crate::cli::overview;
use crate::core::text::quoting::quoted;
use std::path::Path;

/// The flag that named the daemon, with a blank before it; empty where none did.
pub fn target(flags: &Flags) -> String {
    let named =
        |flag: &str, path: &Path| format!(" {flag} {}", quoted(&path.display().to_string()));
    match (&flags.socket, &flags.config) {
        (Some(socket), _) => named("--socket", socket),
        (None, Some(config)) => named("-c", config),
        (None, None) => String::new(),
    }
}

/// `missiond VERB` with the target behind it, wherever such a command stands in a line that has none.
pub fn addressed(text: &str, target: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| with(line, target)).collect();
    lines.join("\n")
}

fn with(line: &str, target: &str) -> String {
    const PROGRAM: &str = "missiond ";
    if target.is_empty() || line.contains(" -c ") || line.contains(" --socket ") {
        return line.to_owned();
    }
    let mut parts = line.split(PROGRAM);
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !c.is_ascii_lowercase());
        let (verb, rest) = part.split_at(end.unwrap_or(part.len()));
        let target = if overview::asks_the_daemon(verb) {
            target
        } else {
            ""
        };
        told += &format!("{PROGRAM}{verb}{target}{rest}");
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_to_the_daemon_names_it() {
        let told = "see it with: missiond status a\nthen: missiond stop a && missiond up";
        assert_eq!(
            addressed(told, " -c x.toml"),
            "see it with: missiond status -c x.toml a\n\
             then: missiond stop -c x.toml a && missiond up -c x.toml"
        );
        for same in [
            "start one with: missiond up -c slots.toml",
            "missiond asks you",
            "or missiond demo",
            "missiond.log in the log directory",
        ] {
            assert_eq!(addressed(same, " -c x.toml"), same);
        }
        assert_eq!(addressed(told, ""), told);
    }

    #[test]
    fn the_flag_is_the_one_that_was_given() {
        let mut flags = Flags::default();
        assert_eq!(target(&flags), "");
        flags.config = Some("a b.toml".into());
        assert_eq!(target(&flags), " -c 'a b.toml'");
        flags.socket = Some("/run/x.sock".into());
        assert_eq!(target(&flags), " --socket /run/x.sock");
    }
}
