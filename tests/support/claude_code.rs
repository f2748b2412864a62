//! The real Claude Code, installed from npm into the target directory on first use.

use super::skip;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The command that runs Claude Code `version`; `None`, said loudly, where npm is missing. In CI that is
/// a failure.
pub fn claude(version: &str) -> Option<Vec<String>> {
    let place = target().join("claude-code").join(version);
    fs::create_dir_all(&place).expect("the target directory can be written");
    // Tests run in several processes at once: the first installs, the others wait for it.
    let lock = File::create(place.join("lock")).expect("the target directory can be written");
    lock.lock().expect("a lock in the target directory");
    let finished = place.join("installed");
    if !finished.exists() {
        if let Err(reason) = install(&place, version) {
            skip(&format!("the real Claude Code is not there: {reason}"));
            return None;
        }
        File::create(&finished).expect("the target directory can be written");
    }
    Some(command(&place))
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("it lies in the target directory")
        .to_owned()
}

fn install(place: &Path, version: &str) -> Result<(), String> {
    let package = format!("@anthropic-ai/claude-code@{version}");
    let Output { status, stderr, .. } = Command::new("npm")
        .args(["install", "--no-save", "--ignore-scripts", "--no-audit"])
        .args(["--no-fund", "--prefix"])
        .arg(place)
        .arg(package)
        .current_dir(place)
        .output()
        .map_err(|error| format!("npm does not run: {error}"))?;
    if !status.success() {
        let said = String::from_utf8_lossy(&stderr);
        return Err(format!("npm install failed ({status}): {said}"));
    }
    Ok(())
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
