//! Whether another user could change a file that decides what is allowed: slots.toml and the policies.
//!
//! The rule is that of sshd. The file, and every directory from `/` down to it, belongs to this user or to root, and no
//! other user can write it. Symbolic links are followed one by one, and the same rule applies to the directories that
//! contain them and to which they lead. Two exceptions are safe: a sticky directory such as /tmp, where no user can
//! replace another user's file, and a group that has this user, or root, as its only member (a private group). Access
//! control lists are not read, but their mask appears as the rights of the group.

use crate::core::text::quoting::quoted;
use crate::os::paths::Env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

const ROOT: u32 = 0;
const STICKY: u32 = 0o1000;

/// The kernel's own limit on links in one path.
const MAX_LINKS: usize = 40;

/// The trusted users and groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    user: u32,
    /// Groups whose only member is this user, or root.
    private_groups: Vec<u32>,
}

impl Trusted {
    /// The user of this process, and root.
    pub fn of_process() -> Trusted {
        let text = |file| fs::read_to_string(file).unwrap_or_default();
        let user = rustix::process::geteuid().as_raw();
        let (passwd, group) = (text("/etc/passwd"), text("/etc/group"));
        Trusted::new(user, &passwd, &group)
    }

    fn new(user: u32, passwd: &str, group: &str) -> Trusted {
        let private = [user, ROOT].map(|user| private_group(user, passwd, group));
        Trusted {
            user,
            private_groups: private.into_iter().flatten().collect(),
        }
    }

    fn owns(&self, found: &Metadata) -> bool {
        [self.user, ROOT].contains(&found.uid())
    }

    /// The other users who can write it; `None` if there are none.
    fn other_writers(&self, found: &Metadata) -> Option<Writers> {
        match found.mode() {
            mode if mode & 0o002 != 0 => Some(Writers::Everybody),
            mode if mode & 0o020 != 0 && !self.private_groups.contains(&found.gid()) => {
                Some(Writers::Group(found.gid()))
            }
            _ => None,
        }
    }

    /// Why a directory may be written by untrusted users, sticky or not.
    pub fn fault_of_directory(&self, found: &Metadata) -> Option<FileFault> {
        match self.owns(found) {
            false => Some(FileFault::Owner(found.uid())),
            true => self
                .other_writers(found)
                .map(|writers| FileFault::Writable(writers, found.mode() & 0o7777)),
        }
    }
}

/// The group with the same name as the user, if no other user is in it. Only the files of this machine are read: a
/// group that is not in them counts as shared.
fn private_group(user: u32, passwd: &str, group: &str) -> Option<u32> {
    fn fields(line: &str) -> Vec<&str> {
        line.split(':').collect()
    }
    let users: Vec<(&str, u32, u32)> = passwd
        .lines()
        .map(fields)
        .filter_map(|f| {
            Some((
                *f.first()?,
                f.get(2)?.parse().ok()?,
                f.get(3)?.parse().ok()?,
            ))
        })
        .collect();
    let (name, _, _) = *users.iter().find(|(_, uid, _)| *uid == user)?;
    let own = group
        .lines()
        .map(fields)
        .find(|f| f.first() == Some(&name))?;
    let gid: u32 = own.get(2)?.parse().ok()?;
    let mut members = own.get(3)?.split(',').filter(|member| !member.is_empty());
    let alone = members.all(|member| member == name)
        && users
            .iter()
            .all(|(_, uid, group)| *group != gid || *uid == user);
    alone.then_some(gid)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    Everybody,
    Group(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFault {
    /// It belongs to this other user.
    Owner(u32),
    /// These can write it; with its mode.
    Writable(Writers, u32),
}

impl fmt::Display for FileFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileFault::Owner(uid) => write!(f, "belongs to user {uid}, not to you or root"),
            FileFault::Writable(Writers::Everybody, mode) => {
                write!(f, "can be written by everybody (mode {mode:04o})")
            }
            FileFault::Writable(Writers::Group(gid), mode) => {
                write!(f, "can be written by group {gid} (mode {mode:04o})")
            }
        }
    }
}

/// Why a file is not trusted.
#[derive(Debug)]
pub enum Exposed {
    /// The file itself.
    File(FileFault),
    /// A directory, or a symbolic link, on the path to it.
    Above {
        at: PathBuf,
        link: bool,
        fault: FileFault,
    },
    NotAFile,
    /// Another file has replaced it since it was opened.
    Replaced,
    Unknown(io::Error),
}

impl fmt::Display for Exposed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exposed::File(fault) => write!(f, "it {fault}"),
            Exposed::Above { at, link, fault } => {
                let what = if *link {
                    "the symbolic link"
                } else {
                    "the directory"
                };
                write!(f, "{what} {}, on the way to it, {fault}", at.display())
            }
            Exposed::NotAFile => f.write_str("it is not a regular file"),
            Exposed::Replaced => f.write_str("it was replaced while it was read"),
            Exposed::Unknown(error) => write!(f, "it is unknown who can change it: {error}"),
        }
    }
}

impl Exposed {
    /// What to do. A command changes only the file itself, or a directory of missiond's own.
    pub fn fix(&self, file: &Path, env: &Env) -> Option<String> {
        const MOVE: &str = "keep it where only you can write, such as ~/.config/missiond";
        Some(match self {
            Exposed::File(FileFault::Writable(..)) => {
                format!("chmod go-w {}", quoted(&file.display().to_string()))
            }
            Exposed::File(FileFault::Owner(_)) => {
                "look through it, then use a copy that belongs to you".to_owned()
            }
            Exposed::Above {
                at,
                link: false,
                fault: FileFault::Writable(..),
            } => env.close_to_writers(at).unwrap_or_else(|| MOVE.to_owned()),
            Exposed::Above { .. } => MOVE.to_owned(),
            Exposed::NotAFile => "name the file itself".to_owned(),
            Exposed::Replaced => "try again".to_owned(),
            Exposed::Unknown(_) => return None,
        })
    }
}

/// Checks an open file, and the path by which it was opened.
pub fn check(path: &Path, opened: &File, trusted: &Trusted) -> Result<(), Exposed> {
    let found = opened.metadata().map_err(Exposed::Unknown)?;
    if !found.is_file() {
        return Err(Exposed::NotAFile);
    }
    if let Some(fault) = trusted.fault_of_directory(&found) {
        return Err(Exposed::File(fault));
    }
    let at_path = walk(path, trusted)?;
    match at_path.map(|at| (at.dev(), at.ino())) == Some((found.dev(), found.ino())) {
        true => Ok(()),
        false => Err(Exposed::Replaced),
    }
}

/// Checks the directory in which a file is to be written, and its parents, as far as they exist.
pub fn check_place(directory: &Path, trusted: &Trusted) -> Result<(), Exposed> {
    let there = directory.ancestors().find(|dir| dir.exists());
    walk(there.unwrap_or(Path::new("/")), trusted).map(drop)
}

/// Walks from `/` to the path, component by component and link by link, and checks each directory and link. Returns the
/// metadata of the end, if that is not a directory.
fn walk(path: &Path, trusted: &Trusted) -> Result<Option<Metadata>, Exposed> {
    let path = std::path::absolute(path).map_err(Exposed::Unknown)?;
    let mut ahead: Vec<OsString> = parts(&path);
    let mut at = PathBuf::from("/");
    let mut sticky = check_directory(&at, trusted)?;
    let mut links = 0;
    while let Some(part) = ahead.pop() {
        if part == ".." {
            at.pop();
            sticky = check_directory(&at, trusted)?;
            continue;
        }
        let entry = at.join(&part);
        let found = fs::symlink_metadata(&entry).map_err(Exposed::Unknown)?;
        if found.is_symlink() {
            links += 1;
            if links > MAX_LINKS {
                let error = rustix::io::Errno::LOOP.into();
                return Err(Exposed::Unknown(error));
            }
            // The mode of a link has no meaning. Its owner could change it, if the directory permits.
            if sticky && !trusted.owns(&found) {
                let fault = FileFault::Owner(found.uid());
                return Err(Exposed::Above {
                    at: entry,
                    link: true,
                    fault,
                });
            }
            let target = fs::read_link(&entry).map_err(Exposed::Unknown)?;
            if target.is_absolute() {
                at = PathBuf::from("/");
                sticky = check_directory(&at, trusted)?;
            }
            ahead.extend(parts(&target));
        } else if found.is_dir() {
            at = entry;
            sticky = check_directory(&at, trusted)?;
        } else {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The components of a path, the last first.
fn parts(path: &Path) -> Vec<OsString> {
    let named = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    let mut parts: Vec<OsString> = named.collect();
    parts.reverse();
    parts
}

/// Checks a directory on the path. Returns whether others can write into it, but only their own files.
fn check_directory(at: &Path, trusted: &Trusted) -> Result<bool, Exposed> {
    let found = fs::symlink_metadata(at).map_err(Exposed::Unknown)?;
    let sticky = found.mode() & STICKY != 0;
    match trusted.fault_of_directory(&found) {
        None => Ok(false),
        Some(FileFault::Writable(..)) if sticky => Ok(true),
        Some(fault) => Err(Exposed::Above {
            at: at.to_owned(),
            link: false,
            fault,
        }),
    }
}

#[cfg(test)]
mod tests;
