//! Where an example runs a daemon: the program that was built beside it, and a directory of its own.

use anyhow::{Context, Result, ensure};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The missiond that was built with this example.
pub fn missiond_beside() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).context("no folder")?;
    Ok(folder.join("missiond"))
}

/// A directory with places for the daemon's runtime, state and policies, and one policy without rules for the role `r`.
/// The daemon's program has to be there.
pub fn directory(prefix: &str, program: &Path) -> Result<tempfile::TempDir> {
    ensure!(program.exists(), "{}: build it first", program.display());
    // Short, since the path of a socket has at most 107 bytes.
    let root = tempfile::Builder::new().prefix(prefix).tempdir()?;
    for private in ["run", "state", "policies"] {
        let path = root.path().join(private);
        DirBuilder::new().mode(0o700).create(path)?;
    }
    std::fs::write(root.path().join("policies/r.toml"), "")?;
    Ok(root)
}
