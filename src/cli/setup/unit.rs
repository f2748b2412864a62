//! The systemd user unit of this user.

use crate::cli::failure::Failure;
use crate::os::paths::{Env, PathError};
use std::path::{Path, PathBuf};

/// The unit that is shipped, for a program that cargo has installed.
const SHIPPED: &str = include_str!("../../../dist/missiond.service");
const PROGRAM: &str = "%h/.cargo/bin/missiond";

pub fn file(env: &Env) -> Result<PathBuf, Failure> {
    let home = env.config_home.as_ref().ok_or(PathError::NoHome)?;
    Ok(home.join("systemd/user/missiond.service"))
}

/// The unit with this program and this PATH: systemd's own PATH has neither `claude` nor what it runs.
pub fn text(program: &Path, config: Option<&Path>, path: &str) -> Result<String, Failure> {
    let program = word(&program.display().to_string())?;
    let config = match config {
        Some(config) => format!(" -c {}", word(&config.display().to_string())?),
        None => String::new(),
    };
    let path = word(&format!("PATH={path}"))?;
    let mut text = String::new();
    // The first lines say how to install it by hand.
    for line in SHIPPED.lines().skip_while(|line| line.starts_with('#')) {
        let line = match line.strip_prefix("ExecStart=") {
            Some(start) => format!("Environment={path}\nExecStart={start}{config}"),
            None if line.starts_with("ExecStop=") => format!("{line}{config}"),
            None => line.to_owned(),
        };
        text += &line.replace(PROGRAM, &program);
        text.push('\n');
    }
    Ok(text)
}

/// A word of a unit file: quoted, and without what systemd replaces.
fn word(text: &str) -> Result<String, Failure> {
    if text.contains(|c: char| c.is_control()) {
        return Err(Failure::usage(format!("{text:?} can't stand in a unit")));
    }
    let text = text.replace('%', "%%").replace('$', "$$");
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@+=,%$".contains(c);
    match text.chars().all(plain) {
        true => Ok(text),
        false => {
            let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
            Ok(format!("\"{escaped}\""))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_names_this_program_its_config_and_the_path() {
        let (program, config) = (
            Path::new("/opt/my tools/missiond"),
            Path::new("/home/a/50%.toml"),
        );
        let text = text(program, Some(config), "/usr/bin:/home/a/bin").unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "Environment=PATH=/usr/bin:/home/a/bin",
            "ExecStart=\"/opt/my tools/missiond\" run -c /home/a/50%%.toml",
            "ExecStop=\"/opt/my tools/missiond\" down --keep -c /home/a/50%%.toml",
            "KillMode=process",
        ] {
            assert!(lines.contains(&line), "no {line:?}:\n{text}");
        }
        assert!(
            text.starts_with("[Unit]\n") && !text.contains(".cargo"),
            "{text}"
        );
    }

    #[test]
    fn nothing_begins_a_line_of_its_own() {
        assert!(text(Path::new("/a\nExecStart=/b"), None, "/bin").is_err());
        assert!(text(Path::new("/a"), None, "/bin\n").is_err());
    }
}
