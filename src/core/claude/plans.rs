//! The plan of a call, as its hook has it, and whether the dialog on the screen shows it. A process that writes to the terminal
//! can paint another plan over the real one; a yes would then be to a plan that nobody has read.

use super::reading::Dialog;
use super::vocabulary::{LEAVES_PLAN, PLAN_ASKED, PLAN_BEGINS, PLAN_READY, PLAN_TITLES, PROCEED};
use serde_json::Value;

/// The tools that show a plan, or offer to make one.
pub const TOOLS: [&str; 2] = ["ExitPlanMode", "EnterPlanMode"];

/// Whether each row of a dialog is in the plan of this call, or in the words that Claude Code puts around a plan. `reason` is
/// what the gate has said of the call, which may stand below the plan. A row is compared by its letters and digits: a plan is
/// drawn as Markdown, in rows of its own, without most marks, and with new numbers in lists. Of a dialog that does not fit on
/// the screen only what stands below its head is compared.
pub fn is_shown_by(input: &Value, reason: &str, dialog: &Dialog) -> bool {
    let plan = input.get("plan").and_then(Value::as_str);
    let mut known = as_drawn(plan.unwrap_or_default()).to_vec();
    known.extend([reason.to_owned(), format!("{PLAN_READY} {PROCEED}")]);
    let fixed = [&[LEAVES_PLAN, PLAN_BEGINS][..], PLAN_TITLES, PLAN_ASKED].concat();
    known.extend(fixed.into_iter().map(str::to_owned));
    let known: Vec<String> = known.iter().map(|text| letters(text)).collect();
    let is_known = |row: &str| {
        let (row, in_list) = (letters(row), letters(without_number(row)));
        let mut known = known.iter();
        known.any(|text| text.contains(&row) || text.contains(&in_list))
    };
    rows(dialog).into_iter().all(is_known)
}

/// The rows of a dialog above its choices, as far as it is known what they should show.
fn rows(dialog: &Dialog) -> Vec<&str> {
    let mut rows: Vec<&str> = dialog.text.lines().map(str::trim).collect();
    let first = dialog.options.first().map(|choice| choice.label.as_str());
    let is_first = |row: &&str| {
        let shown = without_number(row.trim_start_matches(['❯', ' ']));
        first.is_some_and(|label| shown.starts_with(label) || is_begun(label, shown))
    };
    if let Some(choices) = rows.iter().rposition(is_first) {
        rows.truncate(choices);
    }
    match rows.iter().position(|row| *row == PLAN_BEGINS) {
        Some(_) if dialog.complete => rows,
        Some(begin) => rows.split_off(begin),
        None if dialog.complete => rows,
        None => Vec::new(),
    }
}

/// Whether a label goes on in the next row.
fn is_begun(label: &str, shown: &str) -> bool {
    !shown.is_empty() && label.starts_with(shown)
}

/// The ways in which versions of Claude Code draw a plan, as far as its letters go: of a link the text, the address or both,
/// and of code no name of its language.
fn as_drawn(plan: &str) -> [String; 4] {
    let is_fence = |line: &&str| line.trim_start().starts_with("```");
    let lines: Vec<&str> = plan.lines().filter(|line| !is_fence(line)).collect();
    let plain = lines.join("\n");
    let (texts, addresses) = (with_links(&plain, true), with_links(&plain, false));
    [plan.to_owned(), plain, texts, addresses]
}

/// The text with one half of each link, `[text](address)`.
fn with_links(plan: &str, texts: bool) -> String {
    let (mut drawn, mut rest) = (String::new(), plan);
    while let Some((before, link)) = rest.split_once('[') {
        drawn.push_str(before);
        rest = link;
        let target = link.split_once("](");
        let target = target.and_then(|(text, after)| Some((text, after.split_once(')')?)));
        if let Some((text, (address, after))) =
            target.filter(|(text, _)| !text.contains(['[', ']']))
        {
            drawn.push_str(if texts { text } else { address });
            rest = after;
        }
    }
    drawn + rest
}

/// A row of a list without its number, which Claude Code counts by itself.
fn without_number(row: &str) -> &str {
    let rest = row.trim_start_matches(|c: char| c.is_ascii_digit());
    match rest.strip_prefix(['.', ')']) {
        Some(text) if rest.len() < row.len() => text.trim_start(),
        _ => row,
    }
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::claude::reading::{Choice, DialogKind};
    use serde_json::json;

    const PLAN: &str = "# The plan\n\n1. Read `src/main.rs` and **the** [guide](https://docs.example/guide), then go on\n\
        1. Change it\n\n```rust\n❯ 1. Yes\n  2. No\nfn main() {}\n```\n\n| a | b |\n| --- | --- |\n| one two | three |\n\n\
        - Test it\n  - and _again_\n";
    /// As 2.1.325 draws it.
    const DRAWN: &str = " Ready to code?\n\n Here is Claude's plan:\n╌╌╌╌╌╌\n The plan\n\n 1. Read src/main.rs and the guide\n\
        (https://docs.example/guide), then\n go on\n 2. Change it\n\n ❯ 1. Yes\n 2. No\n fn main() {}\n\n ┌─────────┬───────┐\n\
        │    a    │   b   │\n ├─────────┼───────┤\n │ one two │ three │\n └─────────┴───────┘\n\n - Test it\n   - and again\n\
        ──────\n Claude has written up a plan and is ready to execute. Would you like\n to proceed?\n\n\
        ❯ 1. Yes, auto-accept edits\n   2. Tell Claude what to change\n      shift+tab to approve with this feedback";

    fn dialog(text: &str) -> Dialog {
        let labels = ["Yes, auto-accept edits", "Tell Claude what to change"];
        let options = labels.map(|label| Choice {
            label: label.to_owned(),
            number: None,
            description: None,
            checked: None,
        });
        Dialog {
            text: text.to_owned(),
            options: options.into(),
            ..Dialog::new("p", DialogKind::Plan)
        }
    }

    fn shows(text: &str) -> bool {
        is_shown_by(&json!({ "plan": PLAN }), "", &dialog(text))
    }

    #[test]
    fn a_plan_is_known_however_a_version_draws_it() {
        assert!(shows(DRAWN));
        let of_2_0_76 = DRAWN.replace(
            "guide\n(https://docs.example/guide)",
            "https://docs.example/guide",
        );
        assert!(of_2_0_76 != DRAWN && shows(&of_2_0_76));
        let as_a_link = DRAWN.replace("\n(https://docs.example/guide)", "");
        assert!(as_a_link != DRAWN && shows(&as_a_link));
        // Older versions show a plan without its text, and so do newer ones if it is empty.
        assert!(shows(
            " Exit plan mode?\n\n  Claude wants to exit plan mode\n\n  ❯ 1. Yes, auto-accept edits"
        ));
        assert!(is_shown_by(
            &json!({}),
            "",
            &dialog(" Exit plan mode?\n\n  Claude wants to exit plan mode")
        ));
    }

    #[test]
    fn a_row_that_is_not_in_the_plan_is_seen_wherever_it_stands() {
        for painted in [
            "Push it to production",
            "1. Change it and push it",
            "Would you like to proceed? Push it",
            "Ready to push?",
        ] {
            for row in [
                "The plan",
                "Change it",
                "fn main() {}",
                "- Leave",
                "Ready to code?",
                "to proceed?",
                "├─────────┼───────┤",
            ] {
                let text = DRAWN.replacen(row, painted, 1);
                assert!(text == DRAWN || !shows(&text), "{painted} for {row}");
                let below = DRAWN.replacen(row, &format!("{row}\n {painted}"), 1);
                assert!(below == DRAWN || !shows(&below), "{painted} below {row}");
            }
        }
        assert!(
            !is_shown_by(&json!({}), "", &dialog(DRAWN)),
            "the call has no plan"
        );
    }

    #[test]
    fn of_a_plan_that_does_not_fit_on_the_screen_what_is_below_its_head_is_compared() {
        let low = |text: &str| Dialog {
            complete: false,
            ..dialog(text)
        };
        let input = json!({ "plan": PLAN });
        let (_, below) = DRAWN.split_once("Ready to code?").unwrap();
        assert!(is_shown_by(
            &input,
            "",
            &low(&format!("an answer above it\n{below}"))
        ));
        assert!(!is_shown_by(
            &input,
            "",
            &low(&below.replace("Change it", "Push it"))
        ));
    }

    #[test]
    fn what_the_gate_has_said_may_stand_below_the_plan() {
        let said = "missiond [ptietf4pc6]: a person is asked by ExitPlanMode";
        let text = DRAWN.replacen("──────", &format!("Hook PreToolUse:ExitPlanMode requires confirmation for this tool:\n {said}\n /hooks to update\n"), 1);
        let input = json!({ "plan": PLAN });
        assert!(is_shown_by(&input, said, &dialog(&text)));
        assert!(!is_shown_by(
            &input,
            "missiond: something else",
            &dialog(&text)
        ));
    }
}
