use super::*;
use crate::core::claude::{HOOKS_OFF, Version, reserved_flag};
use crate::core::policy::SettingsRules;
use crate::core::settings::SlotConfig;
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use uuid::Uuid;

fn deny(rules: &[&str]) -> SettingsRules {
    SettingsRules {
        deny: rules.iter().map(|rule| (*rule).to_owned()).collect(),
        ..SettingsRules::default()
    }
}

fn slot() -> SlotConfig {
    SlotConfig {
        args: vec!["--model".into(), "opus".into()],
        env: BTreeMap::from([("FOO".into(), "bar".into())]),
        ..SlotConfig::usual("coder", "/src")
    }
}

#[test]
fn a_status_line_of_the_users_stays_behind_ours() {
    let line = |own| {
        let settings = with_status_line(json!({"hooks": {}}), "hook --slot a", own);
        settings["statusLine"].clone()
    };
    let alone = json!({"type": "command", "command": "hook --slot a --status-line >/dev/null"});
    assert_eq!(line(None), alone);
    let own = json!({"type": "command", "command": "echo hi # there", "padding": 2});
    let both = "hook --slot a --status-line | {\necho hi # there\n}";
    assert_eq!(
        line(Some(own)),
        json!({"type": "command", "command": both, "padding": 2})
    );
}

fn environment_from(slot: &SlotConfig, daemon: &[(&str, &str)]) -> Vec<String> {
    let daemon = daemon
        .iter()
        .map(|(name, value)| ((*name).into(), (*value).into()));
    environment(slot, Path::new("/run/m.sock"), daemon)
        .into_iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

const ALWAYS: [&str; 7] = [
    "CLAUDE_AX_SCREEN_READER=0",
    "COLORTERM=truecolor",
    "FOO=bar",
    "INK_SCREEN_READER=0",
    "MISSIOND_SLOT=coder",
    "MISSIOND_SOCKET=/run/m.sock",
    "TERM=xterm-256color",
];

#[test]
fn nothing_of_the_daemons_surroundings_reaches_a_slot() {
    let mut daemon: Vec<(&str, &str)> = LEFT_OUT.iter().map(|name| (*name, "1")).collect();
    daemon.extend(LEFT_OUT_PREFIXES.iter().map(|prefix| (*prefix, "1")));
    daemon.extend(HOOKS_OFF.iter().map(|name| (*name, "1")));
    daemon.extend([("TMUX_PANE", "%1"), ("LISTEN_FDS", "3"), ("TERM", "dumb")]);
    assert_eq!(environment_from(&slot(), &daemon), ALWAYS);
}

#[test]
fn settings_that_people_make_are_kept_and_env_comes_on_top() {
    let daemon = [
        ("CLAUDE_CODE_USE_BEDROCK", "1"),
        ("CLAUDE_CONFIG_DIR", "/c"),
        ("ANTHROPIC_API_KEY", "k"),
        ("FOO", "daemon's"),
    ];
    let mut expected = vec!["ANTHROPIC_API_KEY=k", "CLAUDE_CODE_USE_BEDROCK=1"];
    expected.extend(["CLAUDE_CONFIG_DIR=/c"].iter().chain(&ALWAYS));
    expected.sort();
    assert_eq!(environment_from(&slot(), &daemon), expected);
}

#[test]
fn env_clear_lets_only_the_named_ones_through() {
    let slot = SlotConfig {
        env_clear: true,
        env_pass: vec!["PATH".into(), "CLAUDE_CODE_SIMPLE".into()],
        ..slot()
    };
    let daemon = [
        ("PATH", "/bin"),
        ("HOME", "/h"),
        ("CLAUDE_CODE_SIMPLE", "1"),
    ];
    let mut expected = vec!["PATH=/bin"];
    expected.extend(ALWAYS);
    expected.sort();
    assert_eq!(environment_from(&slot, &daemon), expected);
}

/// Those screens have no input box and no frames: they could not be read.
#[test]
fn screens_for_screen_readers_are_off_whoever_wants_them() {
    let name = "CLAUDE_AX_SCREEN_READER";
    let mut wanting = slot();
    wanting.env = BTreeMap::from([(name.into(), "1".into())]);
    let env = environment_from(&wanting, &[(name, "1")]);
    assert!(env.contains(&format!("{name}=0")), "{env:?}");
    let settings = settings_json("hook", &deny(&[]), "manual", None);
    assert_eq!(
        settings["env"][name], "0",
        "the user's settings have less weight"
    );
    assert!(reserved_flag("--ax-screen-reader").is_some());
}

#[test]
fn a_slot_cannot_pretend_to_be_another() {
    let mut slot = slot();
    slot.env = BTreeMap::from([("MISSIOND_SLOT".into(), "reviewer".into())]);
    assert!(environment_from(&slot, &[]).contains(&"MISSIOND_SLOT=coder".into()));
}

#[test]
fn versions_are_read_as_claude_code_says_them() {
    let read = |text| Version::parse(text).map(|version| version.to_string());
    assert_eq!(read("2.1.325 (Claude Code)\n").as_deref(), Some("2.1.325"));
    assert_eq!(read("2.2.0-beta.1").as_deref(), Some("2.2.0"));
    for bad in ["", "claude", "2.1", "v2.1.3"] {
        assert_eq!(read(bad), None, "{bad}");
    }
    assert!(Version::new(2, 1, 99) < Version::new(2, 1, 200));
}

fn args_of(slot: &SlotConfig, session: SessionStart, version: Option<Version>) -> String {
    claude_args(slot, session, Path::new("/s.json"), version).join(" ")
}

#[test]
fn the_flags_say_which_conversation_and_which_mode() {
    let id = Uuid::nil();
    let begin = format!("--session-id {id} --permission-mode");
    let new = SessionStart::New(id);
    let newest = Some(Version::new(2, 1, 325));
    assert_eq!(
        args_of(&slot(), new, newest),
        format!("{begin} manual --setting-sources user --settings /s.json --model opus")
    );
    let old = args_of(&slot(), new, Some(Version::new(2, 1, 100)));
    assert!(old.starts_with(&format!("{begin} default ")), "{old}");
    let unknown = args_of(&slot(), new, None);
    assert!(
        unknown.starts_with(&format!("{begin} manual ")),
        "{unknown}"
    );
    let resumed = args_of(&slot(), SessionStart::Resume(id), newest);
    assert!(resumed.starts_with(&format!("--resume {id} ")), "{resumed}");
}

#[test]
fn a_project_may_bring_settings_only_where_the_slot_says_so() {
    let slot = SlotConfig {
        project_settings: true,
        mode: "plan".into(),
        ..slot()
    };
    let args = args_of(&slot, SessionStart::New(Uuid::nil()), None);
    assert!(!args.contains("--setting-sources"), "{args}");
    assert!(args.contains("--permission-mode plan"), "{args}");
}

#[test]
fn our_own_flags_are_reserved_in_each_spelling() {
    for flag in ["--resume", "-r", "--resume=x", "--settings", "--bare", "-p"] {
        assert!(reserved_flag(flag).is_some(), "{flag}");
    }
    for flag in ["--model", "--add-dir", "resume", "--resumes"] {
        assert!(reserved_flag(flag).is_none(), "{flag}");
    }
}

#[test]
fn settings_hook_every_event_and_fail_closed() {
    let settings = settings_json("/bin/missiond hook", &deny(&["Bash(rm *)"]), "manual", None);
    let gate = json!([{
        "matcher": "*",
        "hooks": [{ "type": "command", "command": "/bin/missiond hook || exit 2", "timeout": 120 }],
    }]);
    assert_eq!(settings["hooks"]["PreToolUse"], gate);
    // Exit 2 at Stop would prevent the end of the turn.
    assert_eq!(
        settings["hooks"]["Stop"][0]["hooks"][0]["command"],
        "/bin/missiond hook"
    );
    assert_eq!(settings["hooks"].as_object().unwrap().len(), 11);
    assert_eq!(settings["disableAllHooks"], false);
    assert_eq!(settings["permissions"]["deny"], json!(["Bash(rm *)"]));
    assert_eq!(settings["disableAutoMode"], "disable");
    assert_eq!(
        settings["permissions"]["disableBypassPermissionsMode"],
        "disable"
    );
}

#[test]
fn an_older_version_is_told_only_what_it_knows() {
    let settings =
        |version: &str| settings_json("h", &deny(&[]), "manual", Version::parse(version));
    let hooks = |version: &str| settings(version)["hooks"].as_object().unwrap().len();
    assert_eq!(hooks("2.0.42"), 7);
    assert_eq!(hooks("2.0.76"), 8);
    assert_eq!(hooks("2.1.315"), 10);
    assert_eq!(hooks("2.1.325"), 11);
    assert!(settings("2.0.76").get("disableAutoMode").is_none());
    assert!(settings("2.0.42")["hooks"].get("PreToolUse").is_some());
}

#[test]
fn an_older_version_gets_the_rules_in_its_own_words() {
    let rules = [
        "Bash(rm *)",
        "Bash(git push)",
        "Bash(git * main)",
        "Bash(a:*)",
        "Read(./.env)",
        "WebFetch",
    ];
    let rules: Vec<String> = rules.iter().map(|rule| (*rule).to_owned()).collect();
    let handed = SettingsRules {
        allow: rules.clone(),
        ask: vec!["Bash(git * main)".to_owned(), "Bash(git push:*)".to_owned()],
        deny: rules.clone(),
    };
    let written = |version: &str| {
        settings_json("h", &handed, "manual", Version::parse(version))["permissions"].clone()
    };
    let old = json!([
        "Bash(rm:*)",
        "Bash(git push)",
        "Bash(a:*)",
        "Read(./.env)",
        "WebFetch"
    ]);
    for list in ["allow", "deny"] {
        assert_eq!(written("2.0.76")[list], old);
        assert_eq!(written("2.1.0")[list], json!(rules));
    }
    let more = "what it can't say is asked about, and more";
    let asked = json!(["Bash(git push:*)", "Bash(git:*)", "Bash(git:*)"]);
    assert_eq!(written("2.0.76")["ask"], asked, "{more}");
    assert_eq!(written("2.1.0")["ask"], json!(handed.ask));
}

#[test]
fn an_older_version_allows_no_command_if_it_cannot_say_what_is_restricted() {
    let rules = |rules: &[&str]| rules.iter().map(|rule| (*rule).to_owned()).collect();
    let handed = SettingsRules {
        allow: rules(&["Bash", "Bash(git *)", "Read(./**)"]),
        ask: Vec::new(),
        deny: rules(&["Bash(* --force)"]),
    };
    let allowed = |version: &str| {
        let settings = settings_json("h", &handed, "manual", Version::parse(version));
        settings["permissions"]["allow"].clone()
    };
    assert_eq!(allowed("2.0.76"), json!(["Read(./**)"]));
    assert_eq!(allowed("2.1.0"), json!(handed.allow));
}

#[test]
fn a_mode_that_the_slot_asks_for_is_not_disabled() {
    let auto = settings_json("h", &deny(&[]), "auto", None);
    assert!(auto.get("disableAutoMode").is_none());
    let bypass = settings_json("h", &deny(&[]), "bypassPermissions", None);
    let permissions = bypass["permissions"].as_object().unwrap();
    assert!(!permissions.contains_key("disableBypassPermissionsMode"));
}

fn program(dir: &Path, name: &str, mode: u32) -> std::path::PathBuf {
    let file = dir.join(name);
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    file
}

#[test]
fn a_program_is_looked_for_in_the_slots_own_path() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    fs::create_dir(dir.path().join("sub/tool")).unwrap();
    let tool = program(dir.path(), "tool", 0o755);
    let path = format!("/nowhere:{0}/sub:{0}", dir.path().display());
    let found = resolve_program("tool", Some(&path), Path::new("/"));
    assert_eq!(
        found,
        Ok(tool.clone()),
        "a directory of that name is passed over"
    );
    let relative = resolve_program("./tool", None, dir.path());
    assert_eq!(relative, Ok(tool));
}

#[test]
fn what_cannot_run_is_refused_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let plain = program(dir.path(), "plain", 0o644);
    let path = dir.path().to_str().unwrap();
    let refuse = |name: &str| resolve_program(name, Some(path), dir.path()).unwrap_err();
    assert_eq!(refuse("plain"), ProgramError::NotExecutable(plain));
    assert_eq!(
        refuse("./gone"),
        ProgramError::Missing(dir.path().join("./gone"))
    );
    assert_eq!(refuse("./"), ProgramError::Directory(dir.path().join("./")));
    let missing = refuse("gone").to_string();
    assert!(
        missing.contains("`gone`") && missing.contains(path),
        "{missing}"
    );
}

#[test]
fn a_missing_directory_is_refused_before_the_spawn() {
    let dir = tempfile::tempdir().unwrap();
    let file = program(dir.path(), "file", 0o644);
    assert_eq!(check_cwd(dir.path()), Ok(()));
    let gone = dir.path().join("gone");
    assert_eq!(check_cwd(&gone), Err(ProgramError::NoCwd(gone)));
    assert_eq!(check_cwd(&file), Err(ProgramError::CwdIsFile(file)));
}

#[tokio::test]
async fn a_program_is_asked_for_its_version_in_the_slots_environment() {
    let dir = tempfile::tempdir().unwrap();
    let shell = Path::new("/bin/sh");
    let say = |script: &str| {
        fs::write(dir.path().join("say"), script).unwrap();
        vec!["say".to_owned()]
    };
    let env = [("V".to_owned(), "2.1.7".to_owned())];
    let args = say("echo \"$V (Claude Code)\"");
    let version = installed_version(shell, &args, &env, dir.path()).await;
    assert_eq!(version, Ok(Version::new(2, 1, 7)));
    let args = say("echo hello");
    let error = installed_version(shell, &args, &env, dir.path()).await;
    let Err(NoVersion::Untold(said)) = error else {
        panic!("{error:?}");
    };
    assert!(said.contains("hello"), "{said}");
    let args = say("echo broken >&2; exit 3");
    let error = installed_version(shell, &args, &env, dir.path()).await;
    let Err(NoVersion::Fails(why)) = error else {
        panic!("{error:?}");
    };
    assert_eq!(why, "exit status: 3\nbroken");
    let gone = installed_version(Path::new("/no/such"), &[], &env, dir.path()).await;
    assert!(matches!(gone, Err(NoVersion::Fails(_))), "{gone:?}");
    let args = say("yes 9.9.9 | head -c 100000");
    let flood = installed_version(shell, &args, &env, dir.path()).await;
    assert_eq!(flood, Ok(Version::new(9, 9, 9)));
}
