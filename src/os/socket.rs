//! Addresses of unix sockets whose path is too long for an address.

use crate::os::paths::MAX_SOCKET;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The address to bind or connect for a socket at a path; valid as long as this value lives.
#[derive(Debug)]
pub struct Address {
    path: PathBuf,
    /// The open directory that shortens a path that is too long.
    _directory: Option<OwnedFd>,
}

impl Address {
    pub fn of(socket: &Path) -> io::Result<Address> {
        if socket.as_os_str().as_bytes().len() <= MAX_SOCKET {
            return Ok(Address {
                path: socket.to_owned(),
                _directory: None,
            });
        }
        let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty())?;
        Ok(Address {
            path: PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())).join(name),
            _directory: Some(directory),
        })
    }
}

impl AsRef<Path> for Address {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_socket_is_reached_at_a_path_of_any_length() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("d".repeat(90)).join("e".repeat(90));
        std::fs::create_dir_all(&deep).unwrap();
        let socket = deep.join("it.sock");
        let _open = UnixListener::bind(Address::of(&socket).unwrap()).unwrap();
        assert!(UnixStream::connect(&socket).is_err(), "it is too long");
        UnixStream::connect(Address::of(&socket).unwrap()).unwrap();
        assert!(socket.exists());
        let gone = Address::of(&deep.join("no/it.sock")).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_path_that_fits_is_taken_as_it_is() {
        let short = Address::of(Path::new("/run/it.sock")).unwrap();
        assert_eq!(short.as_ref(), Path::new("/run/it.sock"));
    }
}
