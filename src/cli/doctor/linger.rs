//! What the system does to a daemon when its user logs out.

use super::Finding;
use std::path::Path;

/// Where systemd notes for whom it lets things go on after the last logout.
const LINGERING: &str = "/var/lib/systemd/linger";

/// Whose runtime directory goes at the last logout; `None` if that does not concern this one.
pub(super) fn linger(runtime_home: Option<&Path>) -> Option<Finding> {
    let is_booted = Path::new("/run/systemd/system").is_dir();
    let runtime_home = runtime_home.filter(|_| is_booted)?;
    let uid = rustix::process::getuid().as_raw();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    judge(
        runtime_home,
        uid,
        user_of(&users, uid)?,
        Path::new(LINGERING),
    )
}

fn judge(runtime_home: &Path, uid: u32, user: &str, lingering: &Path) -> Option<Finding> {
    if runtime_home != Path::new("/run/user").join(uid.to_string()) {
        return None;
    }
    if lingering.join(user).exists() {
        let detail = format!("linger is on for {user}: slots go on after your last logout");
        return Some(Finding::ok("logout", detail));
    }
    let detail = format!(
        "linger is off for {user}: at your last logout the system removes {}, where the socket is, and may end the slots",
        runtime_home.display()
    );
    Some(Finding::warn("logout", detail).fix("loginctl enable-linger"))
}

fn user_of(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::DoctorCheck;
    use super::*;

    #[test]
    fn only_the_session_managers_directory_without_linger_is_a_warning() {
        let place = tempfile::tempdir().unwrap();
        let health = |home: &str, user: &str| {
            judge(Path::new(home), 1000, user, place.path()).map(|found| found.health)
        };
        assert_eq!(health("/run/user/1000", "a"), Some(DoctorCheck::Warn));
        assert_eq!(health("/tmp/mine", "a"), None);
        assert_eq!(health("/run/user/1001", "a"), None);
        std::fs::write(place.path().join("a"), "").unwrap();
        assert_eq!(health("/run/user/1000", "a"), Some(DoctorCheck::Ok));
        assert_eq!(health("/run/user/1000", "b"), Some(DoctorCheck::Warn));
    }

    #[test]
    fn a_user_is_found_by_the_number() {
        let users = "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nbroken\n";
        assert_eq!(user_of(users, 1000), Some("ann"));
        assert_eq!(user_of(users, 0), Some("root"));
        assert_eq!(user_of(users, 7), None);
    }
}
