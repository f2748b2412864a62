//! Packages from npm, installed into the target directory on first use.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The directory in which these packages (`name@version`) are installed, or why they are not.
pub fn installed(directory: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let place = target().join(directory);
    fs::create_dir_all(&place).expect("the target directory can be written");
    // Tests run in several processes at once: the first installs, the others wait for it.
    let lock = File::create(place.join("lock")).expect("the target directory can be written");
    lock.lock().expect("a lock in the target directory");
    let finished = place.join("installed");
    if !finished.exists() {
        install(&place, packages)?;
        File::create(&finished).expect("the target directory can be written");
    }
    Ok(place)
}

fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("it lies in the target directory")
        .to_owned()
}

fn install(place: &Path, packages: &[&str]) -> Result<(), String> {
    let Output { status, stderr, .. } = Command::new("npm")
        .args(["install", "--no-save", "--ignore-scripts", "--no-audit"])
        .args(["--no-fund", "--prefix"])
        .arg(place)
        .args(packages)
        .current_dir(place)
        .output()
        .map_err(|error| format!("npm does not run: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&stderr);
            Err(format!("npm install failed ({status}): {said}"))
        }
    }
}
