//! The table of answers: each kind of dialog with each kind of answer.

use super::*;

const TABLE: &str = include_str!("answers.txt");

fn option(text: &str, number: &mut u32) -> Choice {
    let (checked, text) = match text.strip_prefix("[ ]").map(|rest| (false, rest)) {
        Some((checked, rest)) => (Some(checked), rest),
        None => match text.strip_prefix("[x]") {
            Some(rest) => (Some(true), rest),
            None => (None, text),
        },
    };
    let label = text.strip_prefix('~');
    *number += u32::from(label.is_none());
    Choice {
        label: label.unwrap_or(text).to_owned(),
        number: label.is_none().then_some(*number),
        description: None,
        checked,
    }
}

fn parsed(line: &str) -> Dialog {
    let (kind, options) = line.split_once(": ").expect("a kind");
    let kind: DialogKind = serde_json::from_value(kind.into()).expect("a known kind");
    let mut number = 0;
    let options = options.split(" | ").map(|text| option(text, &mut number));
    Dialog {
        options: options.collect(),
        ..super::dialog(kind, &[], true)
    }
}

fn outcome(dialog: &Dialog, answer: &str) -> String {
    let picked = match answer.strip_prefix("--text ") {
        Some(words) => written(dialog, words),
        None => said(dialog, answer),
    };
    match picked {
        Ok(picks) => {
            let shown = picks.iter().map(|pick| match pick {
                Pick::Tick(_, true) => format!("+{}", pick.label(dialog)),
                Pick::Tick(_, false) => format!("-{}", pick.label(dialog)),
                Pick::Text(_, words) => format!("{words:?}"),
                Pick::Option(_) | Pick::Esc => pick.label(dialog).to_owned(),
            });
            shown.collect::<Vec<_>>().join(" ")
        }
        Err(NoPick::None(word)) => match nearest_label(dialog, &word) {
            Some(label) => format!("none; {label}"),
            None => "none".to_owned(),
        },
        Err(NoPick::Ambiguous(_)) => "ambiguous".to_owned(),
        Err(NoPick::FreeLine(_)) => "free line".to_owned(),
        Err(NoPick::NoFreeLine) => "no free line".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn each_answer_picks_what_the_table_says() {
    let mut dialog = None;
    let mut wrong = Vec::new();
    let mut rows = 0;
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with('#');
    for line in TABLE.lines().filter(is_row) {
        let Some(row) = line.strip_prefix("  ") else {
            dialog = Some(parsed(line));
            continue;
        };
        let (answer, expected) = row.split_once(" => ").expect("an outcome");
        let got = outcome(dialog.as_ref().expect("a dialog"), answer);
        rows += 1;
        if got != expected {
            wrong.push(format!("{row}\n    but: {got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(rows > 80, "{rows}");
}

proptest::proptest! {
    /// Words reach the free line only where a person says that they are words; and no key but an option's, or Esc,
    /// follows from anything else.
    #[test]
    fn no_word_is_written_unasked(word in "[ -~]{0,12}|(Re|Blu|Typ)[a-z ]{0,4}|(yes|no|[yn])[ -~]{0,2}") {
        let dialogs = TABLE.lines().filter(|line| line.contains(" | ") && !line.starts_with([' ', '#']));
        for dialog in dialogs.map(parsed) {
            for pick in said(&dialog, &word).into_iter().flatten() {
                proptest::prop_assert!(!matches!(pick, Pick::Text(..)), "{word:?}: {pick:?}");
                let label = pick.label(&dialog).to_lowercase();
                let is_named = |label: &str| word.split(',').any(|part| {
                    let part = part.trim().to_lowercase();
                    !part.is_empty() && label.to_lowercase().starts_with(&part)
                });
                // The label of a no is pressed as Esc.
                let says_no = |choice: &Choice| begins_with_word(&choice.label, "no") && is_named(&choice.label);
                let declined = pick == Pick::Esc && dialog.options.iter().any(says_no);
                let named = is_named(&label) || declined;
                let button = label == "submit" && word.contains(',');
                let meant = AnswerWord::of(&word).is_some();
                proptest::prop_assert!(named || button || meant, "{word:?}: {pick:?}");
            }
        }
    }
}
