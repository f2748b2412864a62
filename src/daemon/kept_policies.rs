//! The texts of the policies in force, kept in the state directory. A daemon that takes over running programs goes on
//! with the rules that a person has accepted, not with those that a file has now.

use crate::core::text::hex;
use crate::os::files;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// The name does not end in `.json`, because those files belong to slots.
const FILE: &str = "policies.in-force";

/// A policy has at most 1 MiB, and people have a few dozen roles at most.
const MAX_MIB: u64 = 16;

/// A policy in force: the path of its file, which may have changed since, and its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptPolicy {
    pub file: PathBuf,
    pub text: String,
}

/// The policy of each role.
pub(super) type Texts = BTreeMap<String, KeptPolicy>;

#[derive(Serialize, Deserialize)]
struct KeptTexts {
    /// The digest of the texts: a policy that lost its last lines may still be valid, with fewer rules.
    sha256: String,
    texts: Texts,
}

pub(super) fn file(state: &Path) -> PathBuf {
    state.join(FILE)
}

pub(super) fn save(state: &Path, texts: Texts) -> io::Result<()> {
    let sha256 = digest(&texts)?;
    let text = serde_json::to_string(&KeptTexts { sha256, texts }).map_err(io::Error::other)?;
    if text.len() as u64 > MAX_MIB << 20 {
        let most = format!("together they are longer than {MAX_MIB} MiB");
        return Err(io::Error::other(most));
    }
    files::save(&file(state), &text)
}

pub(super) fn load(state: &Path) -> io::Result<Texts> {
    let text = files::bounded(files::open(&file(state))?, MAX_MIB)?;
    let kept: KeptTexts = serde_json::from_slice(&text).map_err(io::Error::other)?;
    match digest(&kept.texts)? == kept.sha256 {
        true => Ok(kept.texts),
        false => Err(io::Error::other("it is not as it was written")),
    }
}

fn digest(texts: &Texts) -> io::Result<String> {
    let bytes = serde_json::to_vec(texts).map_err(io::Error::other)?;
    Ok(hex::encode(&Sha256::digest(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn kept(text: &str) -> KeptPolicy {
        KeptPolicy {
            file: "coder.toml".into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn texts_are_read_as_they_were_written_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path();
        assert_eq!(load(state).unwrap_err().kind(), io::ErrorKind::NotFound);
        let texts = Texts::from([("coder".to_owned(), kept("deny = [\"Bash(rm *)\"]\n"))]);
        save(state, texts.clone()).unwrap();
        assert_eq!(load(state).unwrap(), texts);
        let mode = file(state).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);

        let written = std::fs::read(file(state)).unwrap();
        let mut found = 0;
        for at in 0..written.len() {
            // Each byte in turn is changed, and the file is cut there.
            let mut changed = written.clone();
            changed[at] ^= 1;
            std::fs::write(file(state), &changed).unwrap();
            found += usize::from(load(state).is_ok_and(|read| read != texts));
            std::fs::write(file(state), &written[..at]).unwrap();
            found += usize::from(load(state).is_ok());
        }
        assert_eq!(found, 0, "damage that nobody noticed");
    }

    #[test]
    fn more_than_the_bound_is_neither_written_nor_read() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path();
        let long = |length| Texts::from([("coder".to_owned(), kept(&"#".repeat(length)))]);
        save(state, long(1 << 20)).unwrap();
        assert!(save(state, long(16 << 20)).is_err());
        assert_eq!(load(state).unwrap(), long(1 << 20), "the one before stays");
        std::fs::write(file(state), " ".repeat((16 << 20) + 1)).unwrap();
        assert!(load(state).unwrap_err().to_string().contains("longer"));
    }
}
