//! The forms that `shell/script` takes: conditions, loops, here-documents, redirections, variables. Commands are put
//! together by a grammar, with something hostile at a random place; what is allowed is run, and looked at from outside.

use super::*;

/// A file that a rule keeps from being read, and what is in it.
const SECRET: (&str, &str) = ("secret", "TOPSECRET");

/// Files that may be written begin with this.
const WRITABLE: char = 'w';

const RULES: &str = r#"
allow = ["Read", "Edit(w*)", "Bash(git *)", "Bash(ls *)", "Bash(grep *)", "Bash(cat *)", "Bash(find *)", "Bash(sort *)",
    "Bash(echo *)", "Bash(printf *)", "Bash(xargs *)", "Bash(sed *)", "Bash(cd *)"]
deny = ["Read(./secret)"]
"#;

/// Words that do harm in one way or another, if they get to a program or a shell as they stand here.
const HOSTILE_WORDS: &[&str] = &[
    "id",
    "-delete",
    "--output=f",
    "-of",
    "secret",
    "./secret",
    "s*",
    "*",
    "?ecret",
    "[s]ecret",
    "f",
    "$(id)",
    "`id`",
    "\"$(id)\"",
    "$(cat secret)",
    "\"$(cat secret)\"",
    "$(< secret)",
    "a[$(id)]",
    "'a[$(id)]'",
    "${x:=id}",
    "${x@P}",
    "$((x[$(id)]))",
    "-exec id +",
    "{id,f}",
    "{secret,f}",
    "s{ecret,}",
    "{s,w}ecret",
    "f{1..3}",
    "{-delete,}",
    "<(id)",
    ">(id)",
    ">f",
    "> f",
    "< secret",
    "<secret",
    ">> f",
    "2> f",
    "&> f",
    ">| f",
    "<> f",
    "; id",
    "| id",
    "&& id",
    "& id",
    "\nid",
    "|& id",
    "$x",
    "\"$x\"",
    "${x}",
    "$y",
    "'$x'",
    "\\$x",
    "\\",
    "'",
    "\"",
    "(",
    ")",
    "$",
    "E\nid",
    "EOF\nid",
    "EOF",
    "~",
    "#",
    "# \n id",
    "fi",
    "done",
    "then id",
    "do id",
    "-v",
    "!",
    "=",
    "x=id",
    "x=secret",
    "\\\nid",
    "\\\n",
    " \\\n;id",
    "$'\\x69d'",
    "$\"id\"",
    "\t",
    "\u{a0}",
    "<<E",
    "<<< secret",
    "<<<\"$(id)\"",
];

const WORDS: &[&str] = &[
    "a",
    "w",
    "'a b'",
    "\"c\"",
    "-n",
    "a*",
    "\"$x\"",
    "$x",
    "\"$y\"",
    "$?",
    "\"$HOME\"",
    "$(ls)",
    "\"$(ls a)\"",
    "\"n: $x\"",
    "1",
    "-l",
];

fn word(random: &mut Random) -> &'static str {
    match random.one_in(6) {
        true => random.of(HOSTILE_WORDS),
        false => random.of(WORDS),
    }
}

fn simple(random: &mut Random) -> String {
    let mut text = String::new();
    if random.one_in(6) {
        text += random.of(&[
            "RUST_LOG=x ",
            "CI=1 ",
            "PATH=p ",
            "x=id ",
            "GIT_PAGER=id ",
            "LD_PRELOAD=f ",
            "RUST_LOG=$(id) ",
        ]);
    }
    text += match random.one_in(12) {
        true => random.of(HOSTILE),
        false => random.of(&[
            "git status",
            "ls",
            "grep x",
            "cat",
            "find .",
            "sort",
            "echo",
            "printf '%s'",
            "git log",
            "git commit -m",
            "sed -n 1p",
            "xargs cat",
            "cat a",
        ]),
    };
    for _ in 0..random.below(3) {
        text += " ";
        text += word(random);
    }
    if random.one_in(5) {
        text += random.of(&[
            " > w1",
            " >> w2",
            " < a",
            " 2>&1",
            " 2>/dev/null",
            " > f",
            " < secret",
            " > \"$x\"",
            " > $x",
            " < \"$x\"",
            " <<< \"$x\"",
            " &> w3",
            " > w*",
        ]);
    }
    text
}

/// A here-document, with its text on the following lines.
fn here(random: &mut Random) -> String {
    let mark = random.of(&["'EOF'", "\"EOF\"", "EOF", "-'EOF'", "E\\OF", "'E'OF"]);
    let program = random.of(&[
        "cat",
        "sort",
        "cat > w1",
        "git commit -F -",
        "cat | sort",
        "sh",
        "cat && ls",
        "cat; id",
        "xargs",
        "cat | sh",
    ]);
    let mut text = format!("{program} <<{mark}\n");
    for _ in 0..random.below(3) {
        text += random.of(&[
            "plain\n", "$(id)\n", "`id`\n", "$x\n", "it's\n", "\")\n", "EOF)\n", "EOF \n",
            "EOF;id\n", "\\\n", "id\n", "\tEOF\n", "secret\n",
        ]);
    }
    text + random.of(&["EOF\n", "EOF\n", "EOF\n", "EOF", "", "\tEOF\n"])
}

fn value(random: &mut Random) -> &'static str {
    random.of(&[
        "a",
        "a",
        "w",
        "'a b'",
        "1",
        "0",
        "secret",
        "-delete",
        "-of",
        "id",
        "'*'",
        "a*",
        "$(ls)",
        "\"$(ls)\"",
        "$(id)",
        "$x",
        "\"$y\"",
        "'a[$(id)]'",
        "~",
        "'~'",
        "a:~",
        "$((1+1))",
        "$((x+1))",
        "'--output=f'",
    ])
}

fn condition(random: &mut Random) -> String {
    match random.below(8) {
        5 => format!("[[ -f {} ]]", word(random)),
        6 => format!(
            "[[ {} {} {} ]]",
            word(random),
            random.of(&["=", "==", "!=", "-eq", "=~", "<", "-nt"]),
            word(random)
        ),
        7 => format!(
            "[[ {} {} {} ! -d {} ]]",
            random.of(&["-z", "-n", "-f", "-v", "-R", "\"$x\"", "!"]),
            word(random),
            random.of(&["&&", "||", "&", ";"]),
            word(random)
        ),
        0 => format!("[ -f {} ]", word(random)),
        1 => format!("[ {} = {} ]", word(random), word(random)),
        2 => format!(
            "[ {} {} ]",
            random.of(&["-z", "-n", "-v", "-R", "\"$x\"", "!"]),
            word(random)
        ),
        3 => format!("! {}", simple(random)),
        _ => simple(random),
    }
}

/// A test whose words come from elsewhere.
fn tested(random: &mut Random) -> String {
    let value = random.of(&["-v", "-v", "1", "="]);
    let first = random.of(&["\"$x\"", "\"$x\"", "-z", "! \"$x\"", "$x"]);
    let second = random.of(&["'a[$(id)]'", "'a[$(id)]'", "a", "= \"$x\"", "\"$x\""]);
    format!("x=$(echo {value}); [ {first} {second} ] && ls")
}

/// A variable that is set twice, the second time perhaps not at all.
fn reassigned(random: &mut Random) -> String {
    const VALUES: &[&str] = &["secret", "a", "'a secret'", "-of", "'a -of'", "1"];
    let (first, second) = (random.of(VALUES), random.of(VALUES));
    let runs = random.of(&["ls", "! ls", "true", "false", "[ -f a ]"]);
    let joins = random.of(&[" && ", " || ", " | ", "; ", "\n"]);
    let program = random.of(&["cat", "sort", "echo", "git log"]);
    let used = random.of(&["\"$x\"", "$x", "${x}", "\"a$x\""]);
    format!("x={first}; {runs}{joins}x={second}; {program} {used}")
}

/// Names that `find` prints or hands to a program.
fn found(random: &mut Random) -> String {
    let place = random.of(&["", ".", "./", "d", "-L .", "d .", "secret"]);
    let mut text = format!("find {place}");
    for _ in 0..random.below(3) {
        text += random.of(&[
            " -name 'a*.c'",
            " -name '*.c'",
            " -name '*.md'",
            " -name '*'",
            " -name 's*'",
            " -not -name '*.c'",
            " ! \\( -name '*.c' \\)",
            " -name '*.c' -name 'a*.c' -o -type f",
            " ! -name '*.c'",
            " -o -name '*.c'",
            " -type f",
            " -o -type f",
            " -delete",
            " -path '*.c'",
            " -print",
        ]);
    }
    text += random.of(&[
        " | xargs cat",
        " | xargs -0 cat",
        " -print0 | xargs -0 cat",
        " | xargs grep x",
        " | sort | xargs cat",
        " | head -n 3 | xargs cat",
        " | xargs sort",
        " | xargs -n1 cat",
        " | xargs id",
        " | xargs sh",
        " -exec cat {} +",
        " -exec cat {} \\;",
        " -exec cat secret {} +",
        " -exec id {} +",
        " -exec sort -of {} +",
        " -exec cat {} + -o -exec cat {} +",
    ]);
    text
}

/// A command behind `cd`, which may succeed or not.
fn moved(random: &mut Random, depth: usize) -> String {
    let target = random.of(&[
        "d", "d", "d", "d", ".", "..", "\"$x\"", "none", "secret", "-", "",
    ]);
    let joins = random.of(&[" && ", " && ", " && ", "; ", " || ", " | ", "\n"]);
    let inner = structured(random, depth - 1);
    let back = random.of(&["", "", " && cd ..", "; cd ..", " && cd .. && cat secret"]);
    format!("cd {target}{joins}{inner}{back}")
}

/// Options of the shell, or its arguments.
fn set(random: &mut Random, depth: usize) -> String {
    let set = random.of(&[
        "set -e",
        "set -eu",
        "set -euo pipefail",
        "set -f",
        "set +f",
        "set -x",
        "set -- secret",
        "set -a",
        "set secret",
    ]);
    let used = random.of(&["", "; cat \"$1\"", "; cat $1"]);
    format!("{set}; {}{used}", structured(random, depth - 1))
}

/// A whole command, put together by the grammar.
pub fn structured(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return simple(random);
    }
    let inner = |random: &mut Random| structured(random, depth - 1);
    match random.below(25) {
        23 | 24 => moved(random, depth),
        22 => set(random, depth),
        20 | 21 => format!(
            "until {}; do {}; break; done",
            condition(random),
            inner(random)
        ),
        18 | 19 => tested(random),
        16 | 17 => found(random),
        14 | 15 => reassigned(random),
        0 => format!("if {}; then {}; fi", condition(random), inner(random)),
        1 => format!(
            "if {}; then {}; else {}; fi",
            condition(random),
            inner(random),
            inner(random)
        ),
        2 => {
            let (first, second) = (value(random), value(random));
            format!("for x in {first} {second}; do {}; done", inner(random))
        }
        3 => format!(
            "for {} in {}; do {}; done",
            random.of(&["y", "PATH", "IFS", "path"]),
            value(random),
            inner(random)
        ),
        4 => format!(
            "while {}; do {}; break; done",
            condition(random),
            inner(random)
        ),
        5 => format!(
            "{{ {}; }}{}",
            inner(random),
            random.of(&["", " > w1", " > f", " < secret"])
        ),
        6 => format!("({}){}", inner(random), random.of(&["", " > w1", " > f"])),
        7 => format!(
            "{}{}{}",
            inner(random),
            random.of(&[" && ", " || ", "; ", " | ", "\n"]),
            inner(random)
        ),
        8 => here(random),
        9 => format!("x={}; {}", value(random), inner(random)),
        10 => {
            let joins = random.of(&["; ", " && ", " | ", " || "]);
            format!(
                "x={}; {}{joins}x={}; {}",
                value(random),
                simple(random),
                value(random),
                inner(random)
            )
        }
        11 => format!("echo \"$({})\"", inner(random)),
        12 => format!(
            "while read -r {}; do {}; done < {}",
            random.of(&["x", "y", "PATH", "-a x"]),
            inner(random),
            random.of(&["a", "secret", "w"])
        ),
        _ => format!(
            "x=1; while [ $x -lt 3 ]; do {}; x=$((x+1)); done",
            inner(random)
        ),
    }
}

fn stubs() -> Bash {
    let bash = Bash::new();
    let show = "[ $# -eq 0 ] && while IFS= read -r line; do echo \"$line\"; done; for file; do [ -f \"$file\" ] && while IFS= read -r line; do echo \"$line\"; done < \"$file\"; done";
    for name in ["cat", "grep", "sed"] {
        bash.stub(name, show);
    }
    // What these do with names is their own business: nothing stands in for them.
    for name in ["find", "xargs"] {
        bash.stub(name, &format!("exec /usr/bin/{name} \"$@\""));
    }
    bash.stub("sh", "while read -r line; do eval \"$line\"; done");
    fs::write(bash.path("cwd").join(SECRET.0), format!("{}\n", SECRET.1)).expect("a secret");
    fs::write(bash.path("cwd").join("a"), "secret\nid\n").expect("a file with hostile names");
    fs::create_dir(bash.path("cwd").join("d")).expect("a directory");
    for name in ["a.c", "d/b.c", "d/c.md"] {
        fs::write(bash.path("cwd").join(name), "text\n").expect("a file");
    }
    bash
}

/// What went wrong when a command ran.
fn fault(bash: &Bash, text: &str) -> Option<String> {
    let (ran, files) = bash.run(text);
    let may_run = |name: &&String| {
        [
            "git", "ls", "grep", "cat", "find", "sort", "echo", "printf", "xargs", "sed",
        ]
        .contains(&name.as_str())
    };
    if let Some(name) = ran.iter().find(|name| !may_run(name)) {
        return Some(format!("ran {name}"));
    }
    let cwd = bash.path("cwd");
    const KEPT: &[&str] = &[SECRET.0, "d", "a.c"];
    if let Some(name) = KEPT
        .iter()
        .find(|name| !files.iter().any(|file| file == *name))
    {
        return Some(format!("removed {name}"));
    }
    let below = fs::read_dir(cwd.join("d")).expect("the directory");
    for file in below.map(|file| file.expect("an entry").path()) {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_own = ["b.c", "c.md"].contains(&&*name);
        if !is_own && !name.starts_with(WRITABLE) {
            return Some(format!("wrote d/{name}"));
        }
        if !is_own {
            fs::remove_file(&file).expect("a file of the command");
        }
    }
    let kept = |name: &&String| !KEPT.contains(&name.as_str());
    let mut shown = fs::read_to_string(bash.path("out")).unwrap_or_default();
    for name in files.iter().filter(kept) {
        if !name.starts_with(WRITABLE) {
            return Some(format!("wrote {name}"));
        }
        shown += &fs::read_to_string(cwd.join(name)).unwrap_or_default();
        fs::remove_file(cwd.join(name)).expect("a file of the command");
    }
    shown
        .contains(SECRET.1)
        .then(|| "showed the secret".to_owned())
}

/// The forms about which missiond's *allow* overrides a question of Claude Code, each by what its text has. `docs/policies.md`
/// lists them.
const FORMS: &[(&str, &[&str])] = &[
    ("a loop over values", &["for "]),
    ("a loop with a condition", &["while ", "until "]),
    ("a branch", &["if "]),
    ("a variable", &["x="]),
    ("an expansion", &["$x", "${x}"]),
    ("a substitution", &["$("]),
    ("a group", &["{ "]),
    ("a subshell", &["("]),
    ("a here-document", &["<<"]),
    ("a directory", &["cd d"]),
    ("a setting of the shell", &["set -"]),
    ("a backslash", &["\\"]),
];

#[test]
fn what_is_allowed_of_scripts_runs_reads_and_writes_nothing_else() {
    let seed = seed();
    let (bash, mut random) = (stubs(), Random(seed));
    let policy =
        Policy::parse(RULES, Path::new("fuzz.toml"), Path::new("/proj")).expect("good rules");
    let seconds = std::env::var("MISSIOND_FUZZ_SECONDS")
        .ok()
        .and_then(|text| text.parse().ok());
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(6));
    let (mut runs, mut scripts) = (0, 0);
    let mut of_forms = vec![0; FORMS.len()];
    // A busy machine gets to each form later.
    while Instant::now() < end || of_forms.contains(&0) {
        let depth = 1 + random.below(3);
        let mut text = structured(&mut random, depth);
        if random.one_in(4) {
            insert_one(&mut text, HOSTILE_WORDS, &mut random);
        }
        let ask = Ask::bash(&text, "/proj");
        if decide(&policy, &ask, &LexicalPaths).decision != Decision::Allow || !is_local(&text) {
            continue;
        }
        runs += 1;
        scripts += usize::from(
            ["if ", "for ", "while ", "<<", "{ ", "(", "x="]
                .iter()
                .any(|form| text.contains(form)),
        );
        for (count, (_, signs)) in of_forms.iter_mut().zip(FORMS) {
            *count += usize::from(signs.iter().any(|sign| text.contains(sign)));
        }
        let fault = fault(&bash, &text);
        assert_eq!(fault, None, "{text:?} was allowed (seed {seed})");
    }
    assert!(
        scripts >= 20,
        "only {scripts} of {runs} allowed commands have a form of interest (seed {seed})"
    );
    println!("{runs} allowed commands were run, {scripts} of them with more than plain words");
    for (count, (form, _)) in of_forms.iter().zip(FORMS) {
        println!("  {count} with {form}");
    }
}

#[test]
fn the_harness_sees_each_kind_of_harm() {
    for (text, fault_of_it) in [
        ("if id; then ls; fi", "ran id"),
        ("for x in secret; do cat \"$x\"; done", "showed the secret"),
        ("x=secret; true | x=a; cat \"$x\"", "showed the secret"),
        ("x=secret; false && x=a; cat \"$x\"", "showed the secret"),
        ("cat < secret", "showed the secret"),
        ("cat < secret > w1", "showed the secret"),
        (
            "while read -r x; do echo \"$x\"; done < secret",
            "showed the secret",
        ),
        (
            "while read -r x; do cat \"$x\"; done < a",
            "showed the secret",
        ),
        ("ls a | xargs cat; echo a > f", "wrote f"),
        ("cat <<EOF\n$(id)\nEOF", "ran id"),
        ("cat <<'EOF'\na\nEOF\nid", "ran id"),
        ("sh <<'EOF'\nid\nEOF", "ran id"),
        ("x='a[$(id)]'; echo $((x))", "ran id"),
        ("[ -v 'a[$(id)]' ]", "ran id"),
        ("[[ -v 'a[$(id)]' ]]", "ran id"),
        ("[[ 'a[$(id)]' -eq 1 ]]", "ran id"),
        ("for PATH in p; do ls; done", "ran x"),
        ("{ echo a; } > f", "wrote f"),
        ("x=-delete; find . $x", "removed secret"),
        ("find . -type f | xargs cat", "showed the secret"),
        ("find . -name 's*' -exec cat {} +", "showed the secret"),
        ("find . -name 'a.c' | xargs id", "ran id"),
        ("cd d && cd .. && cat secret", "showed the secret"),
        ("cd none; cat secret", "showed the secret"),
        ("cd d && echo a > f", "wrote d/f"),
        ("cd d || id; cd none || id", "ran id"),
        (
            "until ls; do id; break; done; until id; do break; done",
            "ran id",
        ),
        ("set -- secret; cat \"$1\"", "showed the secret"),
    ] {
        let found = fault(&stubs(), text);
        let is_found = found.as_deref().is_some_and(|found| found == fault_of_it);
        assert!(is_found, "{text:?}: {found:?} instead of {fault_of_it}");
    }
    for text in [
        "cat a > w1",
        "for x in a b; do echo \"$x\"; done",
        "cat <<'EOF'\n$(id)\nEOF",
        "[ -f a ] && ls",
        "[[ -f a && 'a[$(id)]' != b ]] && ls",
    ] {
        assert_eq!(fault(&stubs(), text), None, "{text}");
    }
}
