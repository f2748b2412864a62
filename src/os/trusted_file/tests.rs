use super::*;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn env(home: &Path) -> Env {
    Env {
        config_home: Some(home.join("config")),
        ..Env::default()
    }
}

fn checked(path: &Path) -> Result<(), Exposed> {
    check(path, &File::open(path).unwrap(), &Trusted::of_process())
}

/// `home/config/missiond/slots.toml`, as `init` writes it.
fn home() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("config/missiond");
    fs::create_dir_all(&own).unwrap();
    let file = own.join("slots.toml");
    fs::write(&file, "").unwrap();
    chmod(&file, 0o644);
    (dir, file)
}

/// Each row: what is changed, below the home, and its mode; whether the file is then trusted; and the command of the
/// fix, for missiond's own files.
#[test]
fn others_must_not_be_able_to_write_the_file_or_what_leads_to_it() {
    let rows = [
        ("config/missiond/slots.toml", 0o600, true, None),
        ("config/missiond/slots.toml", 0o400, true, None),
        ("config/missiond/slots.toml", 0o444, true, None),
        (
            "config/missiond/slots.toml",
            0o666,
            false,
            Some("chmod go-w"),
        ),
        (
            "config/missiond/slots.toml",
            0o646,
            false,
            Some("chmod go-w"),
        ),
        ("config/missiond", 0o755, true, None),
        ("config/missiond", 0o777, false, Some("chmod go-w")),
        ("config/missiond", 0o1777, true, None),
        ("config", 0o777, false, None),
        ("config", 0o1777, true, None),
        ("", 0o707, false, None),
        ("", 0o1707, true, None),
    ];
    for (changed, mode, good, command) in rows {
        let (dir, file) = home();
        let changed = dir.path().join(changed);
        chmod(&changed, mode);
        match checked(&file) {
            Ok(()) => assert!(good, "{mode:o} {} was taken", changed.display()),
            Err(exposed) => {
                assert!(!good, "{mode:o} {}: {exposed}", changed.display());
                let fix = exposed.fix(&file, &env(dir.path())).unwrap();
                match command {
                    Some(command) => {
                        assert_eq!(fix, format!("{command} {}", changed.display()));
                    }
                    None => assert!(!fix.contains("chmod"), "{fix}"),
                }
            }
        }
        chmod(dir.path(), 0o700);
    }
}

/// A user other than root that does not own the files of this process: as root the file is given away, otherwise the
/// checking user is another.
fn foreign(path: &Path) -> Trusted {
    let stranger = 54_321;
    match rustix::process::geteuid().is_root() {
        true => {
            std::os::unix::fs::lchown(path, Some(stranger), None).unwrap();
            Trusted::of_process()
        }
        false => Trusted::new(stranger, "", ""),
    }
}

#[test]
fn a_file_of_another_user_is_refused_and_one_of_root_is_not() {
    let (dir, file) = home();
    let trusted = foreign(&file);
    let exposed = check(&file, &File::open(&file).unwrap(), &trusted).unwrap_err();
    assert!(
        matches!(exposed, Exposed::File(FileFault::Owner(_))),
        "{exposed}"
    );
    let fix = exposed.fix(&file, &env(dir.path())).unwrap();
    assert!(fix.contains("copy") && !fix.contains("chown"), "{fix}");
    checked(Path::new("/etc/passwd")).unwrap();
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let (dir, file) = home();
    let trusted = foreign(&dir.path().join("config"));
    let exposed = check(&file, &File::open(&file).unwrap(), &trusted).unwrap_err();
    let owner = matches!(
        &exposed,
        Exposed::Above {
            fault: FileFault::Owner(_),
            ..
        } | Exposed::File(FileFault::Owner(_))
    );
    assert!(owner, "{exposed}");
}

/// The link, its target, and everything on both paths.
#[test]
fn links_are_followed_and_both_ends_are_checked() {
    let (dir, file) = home();
    let at = |below: &str| dir.path().join(below);
    fs::create_dir(at("open")).unwrap();
    fs::create_dir(at("safe")).unwrap();
    fs::write(at("open/slots.toml"), "").unwrap();
    symlink(at("open/slots.toml"), at("safe/to-open")).unwrap();
    symlink(&file, at("open/to-safe")).unwrap();
    symlink("../open/../config", at("safe/relative")).unwrap();
    let by_relative = at("safe/relative/missiond/slots.toml");
    for path in [at("safe/to-open"), at("open/to-safe"), by_relative.clone()] {
        checked(&path).unwrap();
    }
    chmod(&at("open"), 0o777);
    for path in [at("safe/to-open"), at("open/to-safe"), by_relative] {
        let exposed = checked(&path).unwrap_err();
        let Exposed::Above { at: where_, .. } = &exposed else {
            panic!("{exposed}");
        };
        assert_eq!(*where_, at("open"), "{}", path.display());
    }
    checked(&file).unwrap();
}

#[test]
fn a_link_of_another_user_in_a_sticky_directory_is_refused() {
    let (dir, file) = home();
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    let link = open.join("link");
    symlink(&file, &link).unwrap();
    chmod(&open, 0o1777);
    checked(&link).unwrap();
    if rustix::process::geteuid().is_root() {
        foreign(&link);
        assert!(matches!(
            checked(&link),
            Err(Exposed::Above { link: true, .. })
        ));
    } else {
        // A link of another user can't be made here: only the owner of the directory is tested.
        let opened = File::open(&link).unwrap();
        assert!(check(&link, &opened, &Trusted::new(54_321, "", "")).is_err());
    }
}

#[test]
fn what_was_opened_is_what_is_checked() {
    let (_dir, file) = home();
    let opened = File::open(&file).unwrap();
    fs::rename(&file, file.with_extension("old")).unwrap();
    fs::write(&file, "another").unwrap();
    let exposed = check(&file, &opened, &Trusted::of_process()).unwrap_err();
    assert!(matches!(exposed, Exposed::Replaced), "{exposed}");
    let directory = file.parent().unwrap();
    assert!(matches!(checked(directory), Err(Exposed::NotAFile)));
}

#[test]
fn a_group_is_private_where_nobody_else_is_in_it() {
    let passwd =
        "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/home/me:/bin/sh\nyou:x:1001:1001::/:/bin/sh\n";
    let rows = [
        ("me:x:1000:\n", Some(1000)),
        ("me:x:1000:me\n", Some(1000)),
        ("me:x:1000:you\n", None),
        ("me:x:1000:me,you\n", None),
        // The primary group of another user.
        ("me:x:1001:\n", None),
        ("users:x:1000:\n", None),
        ("", None),
        ("me:x\n", None),
    ];
    for (group, expected) in rows {
        assert_eq!(private_group(1000, passwd, group), expected, "{group:?}");
    }
    assert_eq!(
        private_group(7, passwd, "me:x:1000:\n"),
        None,
        "no such user"
    );
    let trusted = Trusted::new(1000, passwd, "root:x:0:\nme:x:1000:\n");
    assert_eq!(trusted.private_groups, [1000, 0]);
}

/// With a shared group the file is refused, with a private one it is accepted.
#[test]
fn a_shared_group_must_not_write() {
    let (_dir, file) = home();
    let gid = fs::metadata(&file).unwrap().gid();
    let user = rustix::process::geteuid().as_raw();
    chmod(&file, 0o664);
    let opened = File::open(&file).unwrap();
    let with = |private_groups: Vec<u32>| Trusted {
        user,
        private_groups,
    };
    check(&file, &opened, &with(vec![gid])).unwrap();
    let exposed = check(&file, &opened, &with(vec![])).unwrap_err();
    assert!(exposed.to_string().contains("by group"), "{exposed}");
}
