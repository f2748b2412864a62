//! The origin of a TCP connection on this machine. The kernel's table of connections names the user and the socket's
//! inode; the processes that have this socket open are found in /proc.

use rustix::process::getuid;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The other end of a connection: its user, and every process of this user that has it open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpPeer {
    pub uid: u32,
    /// Empty if no process of this user has it open, for example because it has ended.
    pub pids: Vec<i32>,
}

impl TcpPeer {
    /// `ours` and `theirs` are the addresses of the connection as the server sees them. `None` if the kernel does not
    /// list the other end: the connection has ended, or its other end is on another machine.
    pub fn of(ours: SocketAddr, theirs: SocketAddr) -> io::Result<Option<TcpPeer>> {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let table = match fs::read_to_string(table) {
                // A kernel without IPv6 has no such table.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                read => read?,
            };
            if let Some(TcpEntry { uid, inode }) = find(&table, ours, theirs) {
                let pids = match uid == getuid().as_raw() {
                    true => holders(inode)?,
                    false => Vec::new(),
                };
                return Ok(Some(TcpPeer { uid, pids }));
            }
        }
        Ok(None)
    }
}

#[derive(Debug, PartialEq, Eq)]
struct TcpEntry {
    uid: u32,
    inode: u64,
}

/// The entry of the other end: its local address is the server's remote one.
fn find(table: &str, ours: SocketAddr, theirs: SocketAddr) -> Option<TcpEntry> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
        if (local, remote) != (plain(theirs), plain(ours)) {
            return None;
        }
        // After the two addresses: state, queues, timer, retransmits, user, timeouts, inode.
        let uid = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(TcpEntry { uid, inode })
    })
}

/// An IPv4 address on an IPv6 socket, as IPv4.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `0100007F:1F90`: the address in 32-bit words as they are in memory, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (digits, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let words = digits.as_bytes().chunks(8).map(|word| {
        let word = std::str::from_utf8(word).ok()?;
        Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
    });
    let bytes = words.collect::<Option<Vec<[u8; 4]>>>()?.concat();
    let ip = match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(bytes) => IpAddr::V4(Ipv4Addr::from(bytes)),
        Err(_) => IpAddr::from(<[u8; 16]>::try_from(bytes.as_slice()).ok()?),
    };
    Some(plain(SocketAddr::new(ip, port)))
}

/// The processes that have this socket open. Those of other users can't be read, and those that end meanwhile are
/// skipped.
fn holders(inode: u64) -> io::Result<Vec<i32>> {
    let wanted = format!("socket:[{inode}]");
    let mut pids = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let Ok(descriptors) = fs::read_dir(process.path().join("fd")) else {
            continue;
        };
        let is_wanted = |path| fs::read_link(path).is_ok_and(|link| link.as_os_str() == &*wanted);
        if descriptors
            .flatten()
            .any(|descriptor| is_wanted(descriptor.path()))
        {
            pids.push(pid);
        }
    }
    Ok(pids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn the_process_at_the_other_end_is_found() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(any) else {
                assert_eq!(any, "[::1]:0", "loopback of IPv4 is everywhere");
                continue;
            };
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (server, theirs) = listener.accept().unwrap();
            let ours = server.local_addr().unwrap();
            let peer = TcpPeer::of(ours, theirs).unwrap().unwrap();
            assert_eq!(peer.uid, getuid().as_raw());
            assert_eq!(peer.pids, [std::process::id() as i32]);
            drop(client);
        }
    }

    #[test]
    fn a_child_that_has_the_connection_too_is_found_too() {
        use std::os::fd::OwnedFd;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, theirs) = listener.accept().unwrap();
        let shared = OwnedFd::from(client.try_clone().unwrap());
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .stdin(shared)
            .spawn()
            .unwrap();
        let peer = TcpPeer::of(server.local_addr().unwrap(), theirs);
        let mut pids = peer.unwrap().unwrap().pids;
        child.kill().unwrap();
        child.wait().unwrap();
        pids.sort_unstable();
        let mut expected = [std::process::id() as i32, child.id() as i32];
        expected.sort_unstable();
        assert_eq!(pids, expected);
    }

    #[test]
    fn a_connection_that_is_not_there_is_nobodys() {
        let ours = "127.0.0.1:1".parse().unwrap();
        let theirs = "127.0.0.1:2".parse().unwrap();
        assert_eq!(TcpPeer::of(ours, theirs).unwrap(), None);
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             \u{20}  0: 0100007F:A3D2 0100007F:1E61 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 20 4 30 10 -1\n";
        let entry = find(
            table,
            "127.0.0.1:7777".parse().unwrap(),
            "127.0.0.1:41938".parse().unwrap(),
        );
        assert_eq!(
            entry,
            Some(TcpEntry {
                uid: 1000,
                inode: 4711
            })
        );
        assert_eq!(
            address("00000000000000000000000001000000:0050"),
            Some("[::1]:80".parse().unwrap())
        );
        assert_eq!(
            address("0000000000000000FFFF00000100007F:0050"),
            Some("127.0.0.1:80".parse().unwrap())
        );
    }
}
