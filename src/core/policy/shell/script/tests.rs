use super::*;

fn commands(text: &str) -> Option<Vec<String>> {
    let proven = read(text)?;
    let join = |command: &Simple| {
        let words = command.words.iter().map(|word| word.text.as_str());
        words.collect::<Vec<_>>().join(" ")
    };
    Some(proven.commands.iter().map(join).collect())
}

fn runs(text: &str, expected: &[&str]) {
    let found = commands(text).unwrap_or_else(|| panic!("{text} is not taken"));
    assert_eq!(found, expected, "{text}");
}

#[test]
fn every_branch_and_every_value_is_found() {
    runs(
        "if [ -f a ]; then ls; else id; fi",
        &["[ -f a ]", "ls", "id"],
    );
    runs(
        "for x in a b; do cat \"$x\"; wc $x; done",
        &["cat a", "wc a", "cat b", "wc b"],
    );
    runs("while ! ls; do sleep 1; done", &["ls", "sleep 1"]);
    runs("(cd a && ls) | { sort; }", &["cd a", "ls", "sort"]);
    runs("for x in *.c; do cat \"$x\"; done", &["cat *.c"]);
    runs("x=a; ls $x\ny=\"b c\"; cat \"$y\"", &["ls a", "cat b c"]);
    runs(
        "echo \"$(git log)\" $?",
        &["git log", "echo \"$(git log)\" 0"],
    );
    runs("ls \\\n  -la", &["ls -la"]);
}

#[test]
fn what_a_loop_or_a_branch_changes_is_not_known() {
    runs(
        "i=0; while [ $i -lt 3 ]; do echo $i; i=$((i+1)); done",
        &["[ 0 -lt 3 ]", "echo 0"],
    );
    for text in [
        "x=a; while ls; do cat \"$x\"; x=b; done",
        "x=a; if ls; then x=b; fi; cat $x",
        "x=a; ls && x=b; cat $x",
        "x=a; ls | x=b; cat $x",
        "x=a; read -r x; cat $x",
        "for x in a; do x=b; done; cat $x",
        "x=0; while ls; do echo $((x)); x=$(ls); done",
    ] {
        assert_eq!(commands(text), None, "{text}");
    }
}

#[test]
fn here_documents_are_text() {
    runs("cat <<'EOF'\n$(id) it's\nEOF\nls", &["cat", "ls"]);
    runs(
        "git commit -m \"$(cat <<'EOF'\na (b)\n\nit's\nEOF\n)\"",
        &["cat", "git commit -m a (b)\n\nit's"],
    );
    runs("cat <<A <<'B'\n1\nA\n2\nB\nls", &["cat", "ls"]);
    for text in [
        "cat <<EOF\n$(id)\nEOF",
        "cat <<EOF\n`id`\nEOF",
        "cat <<'EOF'\na",
        "cat <<'E'OF\na\nEOF",
        "x \"$(cat <<'EOF'\na\nEOF)\nid\nEOF\n)\"",
        "sh <<'EOF'\nid\nEOF",
        "cat <<'EOF' | bash\nid\nEOF",
    ] {
        assert_eq!(commands(text), None, "{text}");
    }
}

#[test]
fn files_that_the_shell_opens_are_told() {
    let opened = |text: &str| {
        let redirects = read(text).map(|proven| proven.redirects);
        let shown = |redirect: &Redirect| (redirect.access, redirect.target.text.clone());
        redirects.map(|all| all.iter().map(shown).collect::<Vec<_>>())
    };
    let write = |text: &str| (Access::Write, text.to_owned());
    assert_eq!(
        opened("ls > a 2>&1 < b; { ls; } >> 'c d'"),
        Some(vec![
            write("a"),
            (Access::Read, "b".to_owned()),
            write("c d")
        ])
    );
    assert_eq!(opened("ls 2>/dev/null &>/dev/null"), Some(Vec::new()));
    for text in [
        "ls >| a",
        "ls >&a",
        "ls <> a",
        "ls > *",
        "ls > $(ls)",
        "> a",
        "ls 3> a",
        "ls &",
    ] {
        assert_eq!(opened(text), None, "{text}");
    }
}

#[test]
fn what_is_not_known_to_be_harmless_is_left_to_the_parser() {
    for text in [
        "PATH=. ls",
        "LD_PRELOAD=x ls",
        "IFS=x; ls",
        "export PATH=.",
        "for PATH in a; do ls; done",
        "path=a; ls",
        "ls() { id; }",
        "case a in a) id;; esac",
        "ls $x",
        "cat \"$x\"",
        "$x",
        "\"ls\"",
        "echo $((x))",
        "[[ -v a ]]",
        "[[ a -eq 1 ]]",
        "[[ 'a[$(id)]' -eq 1 ]]",
        "[[ a =~ b ]]",
        "[[ -f a* ]]",
        "[[ a ]]",
        "[[ -f a ]] b",
        "[[ -f a",
        "[[ -f a && ]]",
        "[[ -f a & -f b ]]",
        "[[ (-f a) ]]",
        "[[ a < b ]]",
        "[[ -f a ]]; [[",
        "cat '~/a'",
        "cat {a,}",
        "cat {a,{b,c}}",
        "cat {a,'b'}",
        "cat {1..99}",
        "cat {a,$x}",
        "{ls,a}",
        "cat `ls`",
        "cat $(ls)",
        "[ \"$HOME\" \"$USER\" ]",
        "echo ${x@P}",
        "echo $'a'",
        "ls |& cat",
        "ls;; ls",
        "cat ~root/a",
        "l\\\ns",
        "echo $SECRET_TOKEN",
        "ls =a",
    ] {
        assert_eq!(commands(text), None, "{text}");
    }
}

#[test]
fn the_table_of_variables_can_be_read() {
    assert!(variables::may_be_set("RUST_LOG") && variables::may_be_set("i"));
    for name in [
        "PATH",
        "LD_PRELOAD",
        "NODE_OPTIONS",
        "GIT_PAGER",
        "npm_config_x",
        "http_proxy",
        "BASH_ENV",
        "RUSTC_WRAPPER",
    ] {
        assert!(!variables::may_be_set(name), "{name}");
    }
}

#[test]
fn plain_braces_become_several_words() {
    for (text, command) in [
        ("cat {a,b}", "cat a b"),
        ("cat x/{a,b}.c y", "cat x/a.c x/b.c y"),
        ("cat a{1..3}", "cat a1 a2 a3"),
        ("ls {-a,b}", "ls -a b"),
    ] {
        assert_eq!(commands(text), Some(vec![command.to_owned()]), "{text}");
    }
    let loop_over = "for i in {1..2}; do cat \"a$i\"; done";
    let each = ["cat a1", "cat a2"].map(str::to_owned);
    assert_eq!(commands(loop_over), Some(each.to_vec()));
}
