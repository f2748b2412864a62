//! The paths of Claude Code's conversations, and the command by which it calls missiond.

use crate::core::text::quoting::quoted;
use crate::os::files;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use uuid::Uuid;

/// The transcript of a conversation: `projects/<cwd>/<id>.jsonl` in Claude Code's own directory, with a dash for every
/// character of the working directory that is not a letter or a digit.
pub fn transcript_path(env: &[(String, String)], cwd: &Path, session: Uuid) -> Option<PathBuf> {
    let own = own_directory(env)?;
    let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let project: String = cwd.to_string_lossy().chars().map(plain).collect();
    Some(
        own.join("projects")
            .join(project)
            .join(format!("{session}.jsonl")),
    )
}

/// The transcript of a conversation in any directory.
pub fn transcript_elsewhere(env: &[(String, String)], session: Uuid) -> Option<PathBuf> {
    let projects = own_directory(env)?.join("projects").read_dir().ok()?;
    let transcripts = projects
        .flatten()
        .map(|project| project.path().join(format!("{session}.jsonl")));
    transcripts.into_iter().find(|path| path.is_file())
}

/// The ids of the conversations that Claude Code has kept for this directory, the most recent first.
pub fn conversations_in(env: &[(String, String)], cwd: &Path) -> Vec<(String, SystemTime)> {
    let any = transcript_path(env, cwd, Uuid::nil());
    let there = any.and_then(|path| path.parent()?.read_dir().ok());
    let entries = there.into_iter().flatten().flatten();
    let mut found: Vec<(String, SystemTime)> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let id = Uuid::try_parse(name.strip_suffix(".jsonl")?).ok()?;
            Some((id.to_string(), entry.metadata().ok()?.modified().ok()?))
        })
        .collect();
    found.sort_by_key(|(_, used)| std::cmp::Reverse(*used));
    found
}

/// Claude Code's own data directory.
pub fn own_directory(env: &[(String, String)]) -> Option<PathBuf> {
    let value = |name: &str| {
        env.iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| PathBuf::from(value))
    };
    value("CLAUDE_CONFIG_DIR").or_else(|| value("HOME").map(|home| home.join(".claude")))
}

/// The status line that the user has set, in the files that Claude Code would read; the project's own if its settings
/// apply too. A file that can't be read sets none.
pub fn own_status_line(env: &[(String, String)], project: Option<&Path>) -> Option<Value> {
    let own = own_directory(env).map(|own| own.join("settings.json"));
    let project = project.map(|cwd| cwd.join(".claude"));
    let local = project.as_ref().map(|own| own.join("settings.local.json"));
    let shared = project.as_ref().map(|own| own.join("settings.json"));
    let files = [local, shared, own].into_iter().flatten();
    files
        .filter_map(|file| files::read_text(&file).ok())
        .filter_map(|text| serde_json::from_str::<Value>(&text).ok())
        .find_map(|settings| settings.get("statusLine").cloned())
}

/// The shell command of a hook that asks the daemon with this socket and this lock.
pub fn hook_command(program: &Path, socket: &Path, lock: &Path, slot: &str) -> String {
    let word = |path: &Path| quoted(&path.display().to_string());
    let (program, socket, lock) = (word(program), word(socket), word(lock));
    format!(
        "{program} {} --socket {socket} --slot {slot} --lock {lock}",
        crate::hook::VERB
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transcript_lies_under_the_slots_own_home() {
        let env = [("HOME".to_owned(), "/h".to_owned())];
        let id = Uuid::nil();
        let path = transcript_path(&env, Path::new("/no/such_dir/a.b"), id).unwrap();
        assert_eq!(
            path,
            Path::new(&format!("/h/.claude/projects/-no-such-dir-a-b/{id}.jsonl"))
        );
        let env = [("CLAUDE_CONFIG_DIR".to_owned(), "/c".to_owned())];
        assert!(
            transcript_path(&env, Path::new("/x"), id)
                .unwrap()
                .starts_with("/c/projects/-x")
        );
        assert_eq!(transcript_path(&[], Path::new("/x"), id), None);
    }

    #[test]
    fn a_path_with_a_quote_stays_one_word() {
        let command = hook_command(
            Path::new("/it's/missiond"),
            Path::new("/s"),
            Path::new("/l"),
            "a",
        );
        assert_eq!(
            command,
            r"'/it'\''s/missiond' hook --socket /s --slot a --lock /l"
        );
    }
}
