//! Whether Claude Code trusts a folder, according to its own file, which is only read: a folder becomes trusted by the
//! answer to Claude Code's own question.

use crate::os::files;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Claude Code's own file, in a slot's environment.
pub fn trust_file(environment: &[(String, String)]) -> Option<PathBuf> {
    let value = |wanted: &str| {
        let mut variables = environment.iter();
        let found = variables.find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| PathBuf::from(value))
    };
    let home = value("CLAUDE_CONFIG_DIR").or_else(|| value("HOME"))?;
    Some(home.join(".claude.json"))
}

/// Tells whether Claude Code would ask about this folder before it works there. If its file can't be read, it would.
pub fn would_ask(environment: &[(String, String)], folder: &Path) -> bool {
    let text = trust_file(environment).and_then(|file| files::read(&file).ok());
    let settings: Option<Value> = text.and_then(|text| serde_json::from_slice(&text).ok());
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    !settings.is_some_and(|settings| is_trusted(&settings, &folder))
}

/// Tells whether a folder is trusted, which it also is if a parent is.
fn is_trusted(settings: &Value, folder: &Path) -> bool {
    let projects = &settings["projects"];
    folder.ancestors().any(|above| {
        let known = above.to_str().and_then(|above| projects.get(above));
        known.is_some_and(|known| known["hasTrustDialogAccepted"] == Value::Bool(true))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_folder_is_trusted_by_its_own_entry_or_one_above() {
        let settings = json!({"projects": {
            "/src/app": {"hasTrustDialogAccepted": true},
            "/src/other": {"hasTrustDialogAccepted": false},
            "/src/new": {},
        }});
        let trusted = |folder: &str| is_trusted(&settings, Path::new(folder));
        assert!(trusted("/src/app") && trusted("/src/app/deep/below"));
        for not in [
            "/src",
            "/",
            "/src/other",
            "/src/new",
            "/src/apple",
            "/src/unknown",
        ] {
            assert!(!trusted(not), "{not}");
        }
        assert!(!is_trusted(&json!({}), Path::new("/src/app")));
    }

    #[test]
    fn the_file_is_that_of_the_slots_own_home() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().canonicalize().unwrap();
        let path = folder.to_str().unwrap();
        let environment = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        assert!(would_ask(&environment("HOME", path), &folder), "no file");
        let projects = json!({"projects": {path: {"hasTrustDialogAccepted": true}}});
        std::fs::write(folder.join(".claude.json"), projects.to_string()).unwrap();
        assert!(!would_ask(&environment("HOME", path), &folder));
        assert!(!would_ask(&environment("CLAUDE_CONFIG_DIR", path), &folder));
        assert!(would_ask(&environment("HOME", "/nonexistent"), &folder));
        assert!(would_ask(&[], &folder));
    }
}
