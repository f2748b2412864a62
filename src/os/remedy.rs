//! What a person can do about a file or directory that can't be used, by the cause.

use std::io;
use std::path::Path;

/// The next step for this error at this path.
pub fn of(error: &io::Error, path: &Path) -> String {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            format!("make room on the disk of {shown}")
        }
        io::ErrorKind::TimedOut => hung(path),
        io::ErrorKind::ReadOnlyFilesystem => {
            format!(
                "the disk of {shown} is mounted read-only: see why (dmesg), and mount it writable"
            )
        }
        io::ErrorKind::PermissionDenied => format!("see to it that you can write {shown}"),
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::AlreadyExists => {
            format!("see what is in the place of {shown}: ls -ld {shown}")
        }
        _ => format!("see what is wrong with {shown} and its disk: dmesg"),
    }
}

/// The next step if the disk at this path does not answer. Nothing is to be removed for that, and nobody has to be ended.
pub fn hung(path: &Path) -> String {
    format!(
        "see why the disk of {} does not answer (a mount over the network, a frozen or broken disk); missiond goes on as soon as \
         it does",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_own_remedy_and_only_a_full_disk_needs_room() {
        use io::ErrorKind::*;
        let kinds = [
            StorageFull,
            TimedOut,
            ReadOnlyFilesystem,
            PermissionDenied,
            NotFound,
            Other,
        ];
        let of = |kind| of(&io::Error::from(kind), Path::new("/the/logs"));
        let mut all: Vec<String> = kinds.into_iter().map(of).collect();
        assert!(all.iter().all(|text| text.contains("/the/logs")), "{all:?}");
        assert!(all[0].starts_with("make room"));
        assert!(
            all[1..].iter().all(|text| !text.contains("room")),
            "{all:?}"
        );
        all.sort();
        all.dedup();
        assert_eq!(all.len(), kinds.len(), "{all:?}");
    }
}
