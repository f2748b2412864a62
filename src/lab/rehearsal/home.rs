//! A temporary home for Claude Code, so that no account or setting of the machine gets in, and no data of the rehearsal
//! gets out.

use rustix::process::geteuid;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// A key of the right format that belongs to no account.
const API_KEY: &str = "sk-ant-test-00000000000000000000";
/// The number of last characters by which Claude Code remembers an approved key.
const REMEMBERED_KEY_CHARS: usize = 20;

/// The state of Claude Code's settings at its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HomeOptions {
    /// Directories whose trust dialog was accepted.
    pub trusted: Vec<PathBuf>,
    /// Leave the API key unapproved, so that Claude Code asks about it first.
    pub ask_about_key: bool,
}

/// The home directory. Dropping it removes it.
#[derive(Debug)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// Makes a home with a unique name under `parent`.
    pub fn create(parent: &Path, options: &HomeOptions) -> io::Result<Home> {
        let path = parent.join(format!("home-{}", uuid::Uuid::new_v4().simple()));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        let home = Home { path };
        fs::write(home.settings_file(), start_settings(options).to_string())?;
        for directory in &options.trusted {
            home.trust(directory)?;
        }
        Ok(home)
    }

    /// Records that the trust dialog of a directory was accepted. Only for a time when no Claude Code runs here.
    pub fn trust(&self, directory: &Path) -> io::Result<()> {
        let directory = fs::canonicalize(directory)?;
        let mut settings: Value = serde_json::from_slice(&fs::read(self.settings_file())?)?;
        let known = &mut settings["projects"][directory.to_string_lossy().as_ref()];
        known["hasTrustDialogAccepted"] = json!(true);
        fs::write(self.settings_file(), settings.to_string())
    }

    fn settings_file(&self) -> PathBuf {
        self.path.join(".claude.json")
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The whole environment of a Claude Code that uses this home and the API at `base_url`.
    pub fn environment(&self, base_url: &str) -> Vec<(String, String)> {
        let home = self.path.to_string_lossy();
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
        let mut variables = vec![
            ("HOME", home.as_ref()),
            ("PATH", &path),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
            ("ANTHROPIC_BASE_URL", base_url),
            ("ANTHROPIC_API_KEY", API_KEY),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ];
        if geteuid().is_root() {
            // Claude Code refuses some of its modes to root outside a sandbox.
            variables.push(("IS_SANDBOX", "1"));
        }
        variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// The transcript of the conversation `session_id` in `cwd`.
    pub fn transcript_path(&self, cwd: &Path, session_id: &str) -> PathBuf {
        let cwd = fs::canonicalize(cwd).unwrap_or_else(|_| cwd.to_owned());
        self.path
            .join(".claude/projects")
            .join(project_name(&cwd))
            .join(format!("{session_id}.jsonl"))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // If it can't be removed, it stays in a temporary directory; a drop can't report that.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Claude Code's name for a project directory: every character that is not an ASCII letter or digit is a dash.
fn project_name(cwd: &Path) -> String {
    cwd.to_string_lossy()
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect()
}

/// The content of `.claude.json` after the first start of a user.
fn start_settings(options: &HomeOptions) -> Value {
    let end = &API_KEY[API_KEY.len() - REMEMBERED_KEY_CHARS..];
    let approved = if options.ask_about_key {
        vec![]
    } else {
        vec![end]
    };
    json!({
        "hasCompletedOnboarding": true,
        "theme": "dark",
        "customApiKeyResponses": {"approved": approved, "rejected": []},
        "projects": {},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_private_and_gone_after_use() {
        let parent = tempfile::tempdir().expect("a directory");
        let home = Home::create(parent.path(), &HomeOptions::default()).expect("a home");
        let path = home.path().to_owned();
        let settings = fs::read_to_string(path.join(".claude.json")).expect("settings");
        assert!(settings.contains("hasCompletedOnboarding"));
        drop(home);
        assert!(!path.exists());
    }

    #[test]
    fn trust_and_key_are_as_asked() {
        let parent = tempfile::tempdir().expect("a directory");
        let options = HomeOptions {
            trusted: vec![parent.path().to_owned()],
            ask_about_key: true,
        };
        let home = Home::create(parent.path(), &options).expect("a home");
        let settings = fs::read(home.settings_file()).expect("settings");
        let settings: Value = serde_json::from_slice(&settings).expect("JSON");
        assert_eq!(settings["customApiKeyResponses"]["approved"], json!([]));
        let directory = parent.path().canonicalize().expect("it is there");
        let project = &settings["projects"][directory.to_string_lossy().as_ref()];
        assert_eq!(project["hasTrustDialogAccepted"], json!(true));
        assert!(home.trust(&parent.path().join("missing")).is_err());
    }

    #[test]
    fn a_project_is_named_by_its_path() {
        assert_eq!(project_name(Path::new("/a/b.c_d/é")), "-a-b-c-d--");
    }
}
