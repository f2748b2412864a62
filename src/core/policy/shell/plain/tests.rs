//! The fast path and the parser read the same.

use super::super::{Script, parse_into};
use super::*;
use proptest::prelude::*;

fn parsed(text: &str) -> Script {
    let mut script = Script::default();
    parse_into(text, &mut script);
    script
}

type Shape<'s> = (&'s str, usize, &'s [Word]);

fn shape(commands: &[Simple]) -> Vec<Shape<'_>> {
    let parts = commands.iter();
    parts
        .map(|one| (one.text.as_str(), one.start, &one.words[..]))
        .collect()
}

fn programs(commands: &[Simple]) -> Vec<&str> {
    let names = commands.iter().filter_map(|one| one.words.first());
    names.map(|name| name.text.as_str()).collect()
}

#[test]
fn ordinary_commands_take_the_short_way() {
    for text in [
        "ls",
        "git diff | grep foo",
        "timeout 30 npm test",
        "echo ok 2>/dev/null",
        "cargo test --all -- --nocapture 2>&1 | tail -5 >/dev/null",
        "git commit -m 'it is done; or is it? (yes)' && git push origin HEAD:main",
        "grep -rn \"fn main\" src || true\nls -la; pwd;",
        "# a word before\nls # a word behind\n\n",
        "./run.sh a=b --c=d e:f @g 1,2 %h",
        "ls src/*.rs ~/x HEAD^ HEAD~1 ?.txt &>/dev/null",
        "find . \\( -name '*.rs' -o -name x \\) -print",
        "grep \"^a$\" x | grep \"\\$HOME \\w+ \\\"a\\\"\" y",
        "echo ${x} a${y}/b \"${z}\"",
        "echo $x a$y/b \"$z\" \"a $b c\"",
        "echo $(id) a$(ls | grep x)b \"$(id -u) and $(id)\"",
        "git log $(git rev-parse $(cat x 2>/dev/null) && ls; pwd) --oneline | grep \"$(id 'a)b' \"c)\")\"",
    ] {
        let plain = read(text).unwrap_or_else(|| panic!("{text}"));
        let script = parsed(text);
        assert_eq!(script.doubt.as_deref(), plain.doubt, "{text}");
        assert_eq!(shape(&plain.commands), shape(&script.commands), "{text}");
    }
}

#[test]
fn whatever_means_more_is_left_to_the_parser() {
    for text in [
        "ls `id`",
        "ls ${x:-y}",
        "ls ${x",
        "ls ${}",
        "ls ${1}",
        "ls $1",
        "ls $'x'",
        "ls $((1 + 2))",
        "ls $( (id) )",
        "ls $(<x)",
        "ls $()",
        "ls $(",
        "ls $(id",
        "ls $(id))",
        "ls \"$(id\"",
        "ls $(id # )\n)",
        "ls $(case a in a) id;; esac)",
        "ls $(cat <<E\nE\n)",
        "$(id)",
        "$(id) x",
        "ls `$(id)`",
        "ls )",
        "ls \"${x%y}\"",
        "ls \"`id`\"",
        "$x",
        "*ls",
        "~/ls",
        "ls [a]",
        "ls {a,b}",
        "ls &",
        "ls |& x",
        "ls & x",
        "(ls)",
        "{ ls; }",
        "! ls",
        "ls > f",
        "ls >&2x",
        "ls >/dev/nullx",
        "ls 2>&12",
        "> f",
        "2>&1 ls",
        "ls 2>/dev/null x",
        "a=b ls",
        "if x",
        "for x",
        "export a",
        "ls;; x",
        "; ls",
        "&& ls",
        "ls &&",
        "ls |",
        "ls && # x",
        "ls &&\nls",
        "ls 'a",
        "ls \"a",
        "ls a#b$",
        "=ls",
        "a+: b",
        "ls =x",
        "%1",
        "'ls'",
        "l's'",
        "ls < f",
        "ls <<E",
        "lß",
        "ls !x",
        "ls \"!x\"",
        "[ a ]",
        "ls a\\\nb",
        "case x in",
    ] {
        assert!(read(text).is_none(), "{text}");
    }
}

fn token() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => "[a-z]{1,3}",
        2 => "[-_./:=@%+,0-9a-z]{1,4}",
        2 => "'[a-z $;|&#\"<>*]{0,4}'",
        2 => "\"[a-z ;|&#'<>*]{0,4}\"",
        2 => "\"[a-z $\\\\./|^]{0,4}\"",
        2 => "\\$[a-z_]{1,2}",
        1 => "\\$\\{[a-z_]{0,2}\\}",
        2 => prop::sample::select(vec!["$(", "\"$(", ")", ")\"", "$(a)", "$(a b|c)"]).prop_map(str::to_owned),
        2 => "[a-z*?~^]{1,3}",
        1 => "\\\\[a-z ;()*$\"']",
        6 => Just(" ".to_owned()),
        1 => prop::sample::select(vec![
            "&&", "||", ";", "|", "\n", "\t", "#", " #", " >/dev/null", " 2>&1", " 2>/dev/null", "> /dev/null", "&",
            ">", "<", "*", "$", "\\", "!", "(", ")", "{", "}", "[", "]", "~", "if", "do", "time", "then", "test",
            "function", "in",
        ]).prop_map(str::to_owned),
        3 => prop::sample::select(vec![" && ", " || ", "; ", " | ", "\n"]).prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn both_ways_lead_to_the_same(tokens in prop::collection::vec(token(), 1..16)) {
        let text = tokens.concat();
        if let Some(plain) = read(&text) {
            let script = parsed(&text);
            prop_assert_eq!(script.doubt.is_some(), plain.doubt.is_some(), "{:?}", text);
            // With variables, the parser may read one word as two. It is enough that both name the same programs, since none of
            // them is allowed.
            match plain.doubt {
                None => prop_assert_eq!(shape(&plain.commands), shape(&script.commands), "{:?}", text),
                Some(_) => prop_assert_eq!(programs(&plain.commands), programs(&script.commands), "{:?}", text),
            }
        }
    }
}
