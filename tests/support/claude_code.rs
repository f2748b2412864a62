//! The real Claude Code, installed from npm into the target directory on first use.

use super::{npm, skip};
use std::path::{Path, PathBuf};

/// The command that runs Claude Code `version`; `None`, said loudly, where npm is missing. In CI that is
/// a failure.
pub fn claude(version: &str) -> Option<Vec<String>> {
    let package = format!("@anthropic-ai/claude-code@{version}");
    match npm::installed(&format!("claude-code/{version}"), &[&package]) {
        Ok(place) => Some(command(&place)),
        Err(reason) => {
            skip(&format!("the real Claude Code is not there: {reason}"));
            None
        }
    }
}

/// Newer versions are a program of their own, older ones a script for node.
fn command(place: &Path) -> Vec<String> {
    let packages = place.join("node_modules/@anthropic-ai");
    let native = packages.join(native_package()).join("claude");
    let words = if native.exists() {
        vec![native]
    } else {
        vec![PathBuf::from("node"), packages.join("claude-code/cli.js")]
    };
    words
        .into_iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

fn native_package() -> String {
    let os = match std::env::consts::OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("claude-code-{os}-{arch}")
}
