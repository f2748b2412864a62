//! Paths as texts, without access to the file system.

use std::path::{Component, Path, PathBuf};

/// `a/./b/../c` as `a/c`, without access to the file system.
pub fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::with_capacity(path.as_os_str().len());
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            other => out.push(other),
        }
    }
    out
}

/// A name in a directory, in one piece of memory.
pub fn joined(directory: &Path, name: impl AsRef<Path>) -> PathBuf {
    let name = name.as_ref();
    let length = directory.as_os_str().len() + 1 + name.as_os_str().len();
    let mut path = PathBuf::with_capacity(length);
    path.push(directory);
    path.push(name);
    path
}

/// Like `Path::strip_prefix`, but on the text: both paths are already normalised.
pub fn below<'p>(path: &'p Path, base: &Path) -> Option<&'p Path> {
    let start = base.as_os_str().as_encoded_bytes();
    if !path.as_os_str().as_encoded_bytes().starts_with(start) {
        return None;
    }
    let Some(rest) = path.to_str().and_then(|text| text.get(start.len()..)) else {
        return path.strip_prefix(base).ok();
    };
    let is_whole = rest.is_empty() || start.ends_with(b"/");
    let rest = rest.strip_prefix('/').or(is_whole.then_some(rest))?;
    Some(Path::new(rest))
}
