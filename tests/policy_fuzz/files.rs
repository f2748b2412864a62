//! Real programs on real files: what the policy allows must show nothing of a file that may not be read, and change nothing
//! that may not be edited or lies outside. Commands are put together from ways to name a path and ways to use one.

use super::*;
use missiond::os::real_paths::RealPaths;

/// What is in files that may not be read, and in those that may not be changed.
const SECRET: &str = "TOPSECRET";
const KEPT: &str = "KEPT";

const RULES: &str = r#"
allow = ["Read", "Edit(**)", "Bash(git *)", "Bash(ls *)", "Bash(grep *)", "Bash(cat *)", "Bash(head *)", "Bash(find *)",
    "Bash(sort *)", "Bash(echo *)", "Bash(sed *)", "Bash(wc *)", "Bash(cp *)", "Bash(mv *)", "Bash(ln *)", "Bash(rm *)",
    "Bash(tar *)", "Bash(diff *)", "Bash(cd *)", "Bash(mkdir *)", "Bash(touch *)", "Bash(chmod *)", "Bash(install *)"]
deny = ["Read(./secret)", "Read(keys/**)", "Edit(guarded/**)"]
"#;

/// Ways to use paths: `P` is one, `D` a directory, `S` a path as git takes it, `@` a commit.
const USES: &[&str] = &[
    "cat P",
    "cat P P",
    "cat < P",
    "cat D/*",
    "head -1 P",
    "sed -n p P",
    "sort P",
    "wc -l P",
    "grep . P",
    "grep -r TO. D",
    "grep -R TO. D",
    "diff P P",
    "diff -r D D",
    "diff P D",
    "tar cf new.tar D",
    "tar chf new.tar D",
    "tar cf - P",
    "tar cf - -C D .",
    "tar cf - -CD a",
    "cp P P",
    "cp P D",
    "cp P P D",
    "cp -t D P",
    "cp -tD P",
    "cp -r D D",
    "cp -rL D D",
    "cp -a D P",
    "cp -r D/. D",
    "cp D/* D",
    "mv P P",
    "mv P D",
    "mv D P",
    "ln -s P P",
    "ln P P",
    "ln -s P",
    "install P D",
    "rm P",
    "rm -r D",
    "chmod -R 700 D",
    "mkdir P",
    "touch P",
    "echo x > P",
    "echo x >> P",
    "find D -name a",
    "find D -name a -exec cat {} +",
    "find D -type f | xargs cat",
    "cd D",
    "ls D",
    "git show @:P",
    "git show :0:P",
    "git show :P",
    "git show @ -- S",
    "git log -p -- S",
    "git log -p S",
    "git diff @ -- S",
    "git diff @ @:P",
    "git diff P P",
    "git grep TO. @ -- S",
    "git grep TO. S",
    "git grep TO. @",
    "git blame P",
    "git cat-file -p @:P",
    "git cat-file --batch",
    "git archive @ S",
    "git archive @:P",
    "git checkout @ -- S",
    "git restore -s @ S",
    "git rm -rq S",
    "git mv P P",
    "git clean -fdx S",
    "git add -f S",
    "git -C D show @:./P",
    "git -C D diff @ -- P",
    "git -C D checkout @ -- P",
];

const PATHS: &[&str] = &[
    "secret",
    "./secret",
    "keys/a",
    "keys",
    "keys/",
    "src/a",
    "src",
    "src/link",
    "src/out",
    "src/keys",
    "docs",
    "docs/a",
    "docs/secret",
    "guarded",
    "guarded/",
    "guarded/f",
    "../outside/f",
    "../outside",
    "..",
    ".",
    "new",
    "new/a",
    "new/link",
    "new/out",
    "new/keys/a",
    "src/../secret",
    "s*",
    "s?cret",
    "k*/a",
    "*/a",
    "$PWD/secret",
    "a",
];

const DIRECTORIES: &[&str] = &[
    "src",
    "src/",
    "docs",
    "keys",
    "keys/",
    "guarded",
    "guarded/",
    "new",
    ".",
    "..",
    "../outside",
    "src/..",
    "new/keys",
];

/// Without those that mean everything: a whole history is a day's work, and may show a file that was committed.
const SPECS: &[&str] = &[
    "secret",
    "'s*t'",
    "'*ecret'",
    "'?ecret'",
    "'[s]ecret'",
    "keys",
    "'k*'",
    "'*/a'",
    "'keys/*'",
    "':(top)secret'",
    "':/keys'",
    "':(icase)SECRET'",
    "':(glob)**/secret'",
    "src/a",
    "src",
    "'*.rs'",
    "docs",
    "guarded",
    "'g*'",
    "':/guarded'",
    "../outside/f",
];

const COMMITS: &[&str] = &["HEAD", "HEAD~1", "main", "@", "HEAD~1^{tree}"];

fn part(random: &mut Random) -> String {
    let mut text = String::new();
    for letter in random.of(USES).chars() {
        match letter {
            'P' => text += random.of(PATHS),
            'D' => text += random.of(DIRECTORIES),
            'S' => text += random.of(SPECS),
            '@' => text += random.of(COMMITS),
            other => text.push(other),
        }
    }
    // `HEAD:..` is a range of commits.
    text.replace(":..", ":.")
}

/// Forms of the shell around two parts: what the second one makes, the first one meets in the next round of a loop.
const FORMS: &[&str] = &[
    "for i in 1 2; do A; B; done",
    "for f in P P; do cat \"$f\"; B; done",
    "while A; do B; break; done",
    "if A; then B; fi",
    "if A; then B; else B; fi",
    "{ A; B; }",
    "( A && B )",
    "A || B",
    "x=P; cat \"$x\"; A",
    "A > new/a; B",
    "A 2>&1 | B",
];

fn line(random: &mut Random) -> String {
    if random.one_in(3) {
        let mut text = String::new();
        for letter in random.of(FORMS).chars() {
            match letter {
                'A' | 'B' => text += &part(random),
                'P' => text += random.of(PATHS),
                other => text.push(other),
            }
        }
        return text;
    }
    let mut text = part(random);
    for _ in 0..random.below(3) {
        text += random.of(&["; ", " && ", " | "]);
        text += &part(random);
    }
    text
}

/// A project with secrets and a repository.
struct Project {
    directory: tempfile::TempDir,
}

impl Project {
    fn new() -> Project {
        // Not where everybody may write.
        Project::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    fn below(shared: &Path) -> Project {
        let directory = tempfile::tempdir_in(shared);
        let project = Project {
            directory: directory.expect("a temporary directory"),
        };
        project.fill();
        project
    }

    /// Another one that is the same.
    fn copied(&self) -> Project {
        let own = self.directory.path();
        let directory = tempfile::tempdir_in(own.parent().expect("a directory around it"));
        let directory = directory.expect("a temporary directory");
        let copied = Command::new("cp")
            .arg("-a")
            .args([own.join("cwd"), own.join("outside")])
            .arg(directory.path())
            .status();
        assert!(copied.expect("cp").success(), "a copy");
        Project { directory }
    }

    fn cwd(&self) -> PathBuf {
        self.directory.path().join("cwd")
    }

    fn fill(&self) {
        let cwd = self.cwd();
        for (name, text) in [
            ("cwd/secret", SECRET),
            ("cwd/keys/a", SECRET),
            ("cwd/guarded/f", KEPT),
            ("cwd/src/a", "x"),
            ("cwd/docs/a", "x"),
            ("cwd/docs/secret", "x"),
            ("outside/f", KEPT),
        ] {
            let file = self.directory.path().join(name);
            fs::create_dir_all(file.parent().expect("a directory")).expect("a directory");
            fs::write(file, format!("{text}\n")).expect("a file");
        }
        for (link, target) in [
            ("link", "../secret"),
            ("out", "../guarded/f"),
            ("keys", "../keys"),
        ] {
            std::os::unix::fs::symlink(target, cwd.join("src").join(link)).expect("a link");
        }
        // The second commit shows nothing that may not be read.
        let script = "git init -q -b main . && git add -A && git -c user.name=x -c user.email=x commit -qm 1 && echo y >> src/a \
            && git -c user.name=x -c user.email=x commit -qam 2";
        let status = Self::shell(Command::new("/bin/bash").arg("-c").arg(script), &cwd).status();
        assert!(status.expect("bash").success(), "git makes a repository");
    }

    fn shell<'c>(command: &'c mut Command, cwd: &Path) -> &'c mut Command {
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
    }

    /// What a command does that it must not do, if it does.
    fn run(&self, command: &str) -> Option<String> {
        let shown = self.directory.path().join("shown");
        let out = fs::File::create(&shown).expect("a file for what is shown");
        let mut sandbox = Command::new(bwrap().expect("a sandbox"));
        let own = self.directory.path();
        sandbox.args(SANDBOX).arg("--bind").args([own, own]);
        sandbox.arg("--chdir").arg(self.cwd()).arg("--");
        sandbox.args(["/bin/bash", "--noprofile", "--norc", "-c", command]);
        let mut child = Self::shell(&mut sandbox, &self.cwd())
            .stdout(out)
            .spawn()
            .expect("bash");
        wait(&mut child, command);
        let told = |what: &str| Some(what.to_owned());
        let has = |path: &Path, text: &str| {
            let bytes = fs::read(path).unwrap_or_default();
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        let below = |name: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(own.join(name)).expect("a directory that must stay");
            entries
                .map(|entry| entry.expect("an entry").path())
                .collect()
        };
        if has(&shown, SECRET) {
            return told("it shows what may not be read");
        }
        for (directory, file) in [("cwd/guarded", "cwd/guarded/f"), ("outside", "outside/f")] {
            if !own.join(directory).is_dir()
                || below(directory) != [own.join(file)]
                || !has(&own.join(file), KEPT)
            {
                return told("it changes what may not be changed");
            }
        }
        let secrets = [own.join("cwd/secret"), own.join("cwd/keys/a")];
        if !secrets.iter().all(|secret| has(secret, SECRET)) {
            return told("it takes away what may not be read");
        }
        let copy = files_below(&self.cwd())
            .into_iter()
            .find(|file| !secrets.contains(file) && has(file, SECRET));
        copy.map(|file| format!("it copies what may not be read to {}", file.display()))
    }
}

/// Plain files, but for those of the repository itself.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let kind = entry.file_type().expect("a kind of file");
            match () {
                () if entry.file_name() == ".git" => {}
                () if kind.is_dir() => waiting.push(entry.path()),
                () if kind.is_file() => found.push(entry.path()),
                () => {}
            }
        }
    }
    found
}

fn is_allowed(policy: &Policy, cwd: &Path, command: &str) -> bool {
    let ask = Ask::bash(command, cwd);
    decide(policy, &ask, &RealPaths::new(None)).decision == Decision::Allow
}

#[test]
fn what_is_allowed_reads_no_secret_and_changes_nothing_that_is_kept() {
    run_what_is_allowed(Project::new);
}

/// A neighbour in `/tmp` is outside too.
#[test]
fn what_is_allowed_in_a_shared_directory_changes_no_neighbour() {
    run_what_is_allowed(|| Project::below(Path::new("/tmp")));
}

fn run_what_is_allowed(new: impl Fn() -> Project) {
    if bwrap().is_none() {
        skip("allowed commands on real files are not run (needs bubblewrap)");
        return;
    }
    let policy = Policy::parse(RULES, Path::new("fuzz.toml"), Path::new("/nowhere"));
    let policy = policy.expect("a good policy");
    let seed = seed();
    let mut random = Random(seed);
    let seconds = std::env::var("MISSIOND_FUZZ_SECONDS").ok();
    let seconds = seconds
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(8);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut runs, mut tries) = (0, 0);
    let template = new();
    let mut project = template.copied();
    // As long as it takes on a busy machine.
    while Instant::now() < end || runs < 20 && tries < 20_000 {
        tries += 1;
        let text = line(&mut random);
        if !is_allowed(&policy, &project.cwd(), &text) {
            continue;
        }
        runs += 1;
        let wrong = project.run(&text);
        assert_eq!(wrong, None, "{text:?} was allowed (seed {seed})");
        project = template.copied();
    }
    assert!(
        runs >= 20,
        "only {runs} of {tries} commands were allowed: this tests nothing (seed {seed})"
    );
    println!("{runs} allowed commands were run");
}

/// What the test above must find, if the policy lets it in; and that it does not.
#[test]
fn the_files_would_show_a_wrong_verdict() {
    if bwrap().is_none() {
        skip("allowed commands on real files are not run (needs bubblewrap)");
        return;
    }
    let policy = Policy::parse(RULES, Path::new("fuzz.toml"), Path::new("/nowhere"));
    let policy = policy.expect("a good policy");
    let template = Project::new();
    for command in [
        "cat secret",
        "cat src/link",
        "grep -R TOP src",
        "diff -rN src docs",
        "cp -rL src new",
        "tar chf new.tar src",
        "tar cf - -Ckeys a",
        "cp -r keys new",
        "mv src new; cat new/link",
        "git mv src new; cat < new/link",
        "ln -s secret new; cat new",
        "git show :0:secret",
        "git show HEAD~1:keys/a",
        "git log -p -- '*ecret'",
        "git log -p -- ':(icase)SECRET'",
        "git grep TOP HEAD",
        "git archive HEAD",
        "git archive HEAD:keys",
        "git -C src show HEAD:./../secret",
        "cp src/a guarded",
        "cp -tguarded src/a",
        "rm -r guarded",
        "git rm -rqf guarded",
        "mv guarded new",
        "cp docs/a src/out",
        "mv keys new",
        "touch ../outside/new",
    ] {
        let project = template.copied();
        assert!(project.run(command).is_some(), "{command:?} does no harm");
        assert!(
            !is_allowed(&policy, &template.cwd(), command),
            "{command:?} is allowed"
        );
    }
    let project = template.copied();
    assert_eq!(
        project.run("cat src/a; git show; git log -p -1; cp src/a new; git diff HEAD~1 -- src"),
        None
    );
}
