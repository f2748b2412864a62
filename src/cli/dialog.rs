//! A dialog as a person reads it, with the commands that answer it. Pure.

use crate::cli::columns::wrapped;
use crate::cli::request::DrawnRequest;
use crate::cli::sanitise;
use crate::control::requests::PendingDialog;
use crate::core::claude::keys;
use crate::core::claude::questions::{self, Question};
use crate::core::claude::reading::{Choice, Dialog, DialogKind};
use crate::core::model::{Always, WaitingCall};
use crate::core::text::quoting::quoted;
use serde_json::Value;

/// A dialog, and what is said of it beside it.
pub struct Asked<'a> {
    pub slot: &'a str,
    pub dialog: &'a Dialog,
    pub why: Option<&'a str>,
    /// What `always` would do, where that is known.
    pub always: Option<&'a Always>,
    pub doubtful: Option<&'a str>,
    pub waiting_calls: &'a [WaitingCall],
    /// How wide the terminal is that it is shown on.
    pub width: Option<u16>,
}

impl<'a> Asked<'a> {
    pub fn new(slot: &'a str, dialog: &'a Dialog) -> Asked<'a> {
        Asked {
            slot,
            dialog,
            why: None,
            always: None,
            doubtful: None,
            waiting_calls: &[],
            width: None,
        }
    }
}

/// What waits in a slot: a dialog, or a call that the screen does not show. `width` is that of the terminal.
pub fn render_pending(
    who: &str,
    pending: &PendingDialog,
    target: &str,
    width: Option<u16>,
) -> String {
    let Some(dialog) = &pending.dialog else {
        return hidden(who, pending, target, width);
    };
    let asked = Asked {
        why: pending.why.as_deref(),
        always: pending.always.as_ref(),
        doubtful: pending.doubtful.as_deref(),
        waiting_calls: &pending.waiting_calls,
        width,
        ..Asked::new(&pending.slot, dialog)
    };
    render(who, &asked, target)
}

fn hidden(who: &str, pending: &PendingDialog, target: &str, width: Option<u16>) -> String {
    let mut text =
        format!("{who} has a call that waits for you, and its screen does not show it\n");
    if let Some(doubt) = &pending.doubtful {
        text += &remark("DOUBTFUL", doubt, width);
    }
    text += &waiting(&pending.waiting_calls, width);
    let slot = quoted(&pending.slot);
    text += "  something may be written over its dialog; have it drawn again with:\n";
    text + &format!("    missiond confirm{target} {slot} no\n")
}

fn waiting(calls: &[WaitingCall], width: Option<u16>) -> String {
    let shown = |call: &WaitingCall| {
        let tool = sanitise::one_line(&call.tool);
        format!("  at the gate waits: {tool}\n") + &known(call).drawn(4, width)
    };
    calls.iter().map(shown).collect()
}

/// `who` is the slot as the heading names it; `target` names the daemon in the commands.
pub fn render(who: &str, asked: &Asked, target: &str) -> String {
    let (dialog, width) = (asked.dialog, asked.width);
    let mut text = format!("{who} {}\n", heading(dialog));
    match is_doubtful(asked) {
        true => text += &doubt(asked),
        false => text += &shown(dialog, 2, width),
    }
    if let Some(why) = asked.why.filter(|_| asked.doubtful.is_none()) {
        text += &remark("why you are asked", why, width);
    }
    let why_not = asked.always.and_then(|always| always.why_not.as_deref());
    if let Some(why_not) = why_not.filter(|_| is_call(dialog) && !is_doubtful(asked)) {
        text += &remark("`always` would add no rule", why_not, width);
    }
    text += "  answer with:\n";
    for command in commands(asked, target) {
        text += &format!("    {command}\n");
    }
    text
}

/// A line of missiond's own, whose reason may have words of the request in it: its further rows are indented.
fn remark(label: &str, reason: &str, width: Option<u16>) -> String {
    let line = format!("{label}: {}", sanitise::one_line(reason));
    let room = width.map_or(usize::MAX, |width| {
        usize::from(width).saturating_sub(6).max(20)
    });
    let rows = wrapped(&line, room);
    format!("  {}\n", rows.join("\n      "))
}

/// What the screen shows of a dialog.
fn shown(dialog: &Dialog, indent: usize, width: Option<u16>) -> String {
    let mut request = DrawnRequest::default();
    if let Some(input) = &dialog.input {
        request.input(input);
    }
    request.text(&question(dialog));
    for (index, option) in dialog.options.iter().enumerate() {
        let mark = match dialog.selected == Some(index) {
            true => '>',
            false => '-',
        };
        request.text(&format!("{mark} {}", ticked(option)));
        if let Some(description) = &option.description {
            request.text(&format!("    {}", sanitise::one_line(description)));
        }
    }
    let part = match dialog.complete {
        true => String::new(),
        false => format!("{:indent$}(the screen shows only a part of it)\n", ""),
    };
    request.drawn(indent, width) + &part
}

/// What speaks against the screen, what the screen shows, and the calls that wait in truth.
fn doubt(asked: &Asked) -> String {
    let unknown = "this is not about a call that has come to the gate";
    let why = asked.doubtful.unwrap_or(unknown);
    let mut text = remark("DOUBTFUL", why, asked.width);
    text += "  the screen shows:\n";
    text += &shown(asked.dialog, 4, asked.width);
    text + &waiting(asked.waiting_calls, asked.width)
}

/// What the gate knows of a call: of questions their words and labels, else the whole input.
fn known(call: &WaitingCall) -> DrawnRequest {
    let mut request = DrawnRequest::default();
    let questions = questions::of(&call.input);
    for question in &questions {
        known_question(&mut request, question);
    }
    if let Some(input) = call.input.as_object().filter(|_| questions.is_empty()) {
        request.input(input);
    }
    request
}

fn known_question(request: &mut DrawnRequest, question: &Question) {
    request.text(question.text);
    for offer in &question.offers {
        request.text(&format!("- {}", sanitise::one_line(offer.label)));
    }
}

fn is_call(dialog: &Dialog) -> bool {
    dialog.kind == DialogKind::Permission
}

fn is_doubtful(asked: &Asked) -> bool {
    asked.doubtful.is_some() || !asked.waiting_calls.is_empty()
}

/// A part of a tool's input: strings as they are, all else as JSON.
pub fn argument(key: &str, value: &Value) -> String {
    let value = value.as_str().map_or(value.to_string(), str::to_string);
    format!("{key}: {value}")
}

/// The label of an option, with its tick if several can be chosen.
pub fn ticked(option: &Choice) -> String {
    let tick = match option.checked {
        Some(true) => "[x] ",
        Some(false) => "[ ] ",
        None => "",
    };
    format!("{tick}{}", sanitise::one_line(&option.label))
}

/// What is asked, without what is printed beside it anyway: the tool's input, the options, the rules between.
pub fn question(dialog: &Dialog) -> String {
    if dialog.kind == DialogKind::Permission && dialog.input.is_some() {
        return String::new();
    }
    let first = dialog.options.first().map(|option| option.label.as_str());
    let is_option = |line: &str| first.is_some_and(|label| line.ends_with(label));
    let is_rule = |line: &str| line.chars().all(|c| matches!(c, '─' | '╌' | '━' | ' '));
    let lines = dialog.text.lines().map(str::trim);
    let asked = lines
        .take_while(|line| !is_option(line))
        .filter(|line| !is_rule(line));
    asked.collect::<Vec<_>>().join("\n")
}

fn heading(dialog: &Dialog) -> String {
    let tool = sanitise::one_line(dialog.tool.as_deref().unwrap_or("something"));
    match dialog.kind {
        DialogKind::Permission => format!("asks for permission: {tool}"),
        DialogKind::Question => "asks a question".into(),
        DialogKind::Plan => "asks you to approve its plan".into(),
        DialogKind::Trust => "asks whether its directory can be trusted".into(),
        DialogKind::ApiKey => "asks about an API key".into(),
        DialogKind::Other => "shows something that takes the keys".into(),
    }
}

/// The dialog's id goes along, so that an answer never reaches another dialog.
fn commands(asked: &Asked, target: &str) -> Vec<String> {
    let (slot, dialog) = (asked.slot, asked.dialog);
    if is_doubtful(asked) {
        return doubtful_commands(asked, target);
    }
    let confirm = |answer: &str| {
        format!(
            "missiond confirm{target} {slot} {answer} --dialog {}",
            word(&dialog.id)
        )
    };
    match dialog.kind {
        DialogKind::Permission => {
            let adds_rule = asked.always.is_some_and(|always| always.rule.is_some());
            let always = adds_rule.then(|| confirm("always"));
            let no = confirm("no") + " --reason 'why not'";
            [Some(confirm("yes")), always, Some(no)]
                .into_iter()
                .flatten()
                .collect()
        }
        // A page with nothing to choose, as at the first start.
        _ if dialog.options.is_empty() && dialog.text.contains("Press Enter to continue") => {
            vec![format!("missiond keys{target} {slot} enter --into-dialog")]
        }
        _ if dialog.options.is_empty() => {
            vec![
                format!("missiond attach{target} {slot}"),
                format!("missiond interrupt{target} {slot}"),
                format!("missiond screen{target} {slot}"),
            ]
        }
        _ => {
            let free = keys::empty_free_line(dialog);
            let options = dialog.options.iter().enumerate();
            let answers = options.map(|(index, option)| match Some(index) == free {
                true => "--text 'your words'".to_owned(),
                false => word(&option.label),
            });
            answers.map(|answer| confirm(&answer)).collect()
        }
    }
}

/// A no can always be given: it is Esc, whatever the screen shows. Any other answer is for somebody who has looked.
fn doubtful_commands(asked: &Asked, target: &str) -> Vec<String> {
    let (slot, dialog) = (asked.slot, asked.dialog);
    let plain = Asked::new(slot, dialog);
    let answers = commands(&plain, target).into_iter().filter(|command| {
        let is_no = command.contains(&format!("confirm{target} {slot} no "));
        command.contains(" --dialog ") && !is_no
    });
    let looks = [
        format!(
            "missiond confirm{target} {slot} no --dialog {}",
            word(&dialog.id)
        ),
        format!("missiond why{target} {slot}"),
        format!("missiond attach{target} {slot}"),
    ];
    let insists = answers.map(|answer| format!("{answer} --anyway"));
    looks.into_iter().chain(insists).collect()
}

/// A word as a shell takes it and a terminal bears it.
fn word(text: &str) -> String {
    quoted(&sanitise::one_line(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dialog(kind: &str, options: serde_json::Value) -> Dialog {
        serde_json::from_value(json!({
            "id": "d-7", "kind": kind, "tool": "Bash", "input": {"command": "rm -r x\u{1b}[2J"},
            "text": "Run it?\nReally?", "options": options, "selected": 0, "complete": false
        }))
        .unwrap()
    }

    #[test]
    fn a_doubt_is_shown_with_what_waits_in_truth() {
        let dialog = dialog("permission", json!([{"label": "Yes"}, {"label": "No"}]));
        let call = WaitingCall {
            tool: "Bash".into(),
            input: json!({"command": "touch p\nmake"}),
        };
        let asked = Asked {
            why: Some("no rule speaks"),
            doubtful: Some("the gate has another"),
            waiting_calls: &[call],
            ..Asked::new("coder", &dialog)
        };
        insta::assert_snapshot!(render("coder (12s)", &asked, ""), @r"
        coder (12s) asks for permission: Bash
          DOUBTFUL: the gate has another
          the screen shows:
            │ command: rm -r x\x1b[2J
            │ > Yes
            │ - No
            (the screen shows only a part of it)
          at the gate waits: Bash
            │ command:
            │   touch p
            │   make
          answer with:
            missiond confirm coder no --dialog d-7
            missiond why coder
            missiond attach coder
            missiond confirm coder yes --dialog d-7 --anyway
        ");
    }

    #[test]
    fn a_question_in_doubt_is_shown_with_the_one_that_was_asked() {
        let mut dialog = dialog("question", json!([{"label": "Blue"}, {"label": "Red"}]));
        dialog.input = None;
        dialog.text = "Which colour?\n❯ 1. Blue\n  2. Red".into();
        let options = json!([{"label": "Red"}, {"label": "Blue"}]);
        let call = WaitingCall {
            tool: "AskUserQuestion".into(),
            input: json!({"questions": [{"question": "Which colour?", "options": options}]}),
        };
        let asked = Asked {
            doubtful: Some("the options differ"),
            waiting_calls: &[call],
            ..Asked::new("coder", &dialog)
        };
        insta::assert_snapshot!(render("coder (12s)", &asked, ""), @r"
        coder (12s) asks a question
          DOUBTFUL: the options differ
          the screen shows:
            │ Which colour?
            │ > Blue
            │ - Red
            (the screen shows only a part of it)
          at the gate waits: AskUserQuestion
            │ Which colour?
            │ - Red
            │ - Blue
          answer with:
            missiond confirm coder no --dialog d-7
            missiond why coder
            missiond attach coder
            missiond confirm coder Blue --dialog d-7 --anyway
            missiond confirm coder Red --dialog d-7 --anyway
        ");
    }

    #[test]
    fn ticks_are_shown_where_several_can_be_chosen() {
        let options = json!([
            {"label": "Cheese", "number": 1, "checked": true},
            {"label": "Ham", "number": 2, "checked": false},
            {"label": "Submit"}
        ]);
        let shown = shown(&dialog("question", options), 2, None);
        assert!(
            shown.contains("  │ > [x] Cheese\n  │ - [ ] Ham\n  │ - Submit\n"),
            "{shown}"
        );
    }

    #[test]
    fn a_permission_is_shown_whole_with_its_commands() {
        let dialog = dialog("permission", json!([{"label": "Yes"}, {"label": "No"}]));
        let always = Always::from(Ok("Bash(rm -r x)".to_owned()));
        let asked = Asked {
            why: Some("no rule speaks"),
            always: Some(&always),
            ..Asked::new("coder", &dialog)
        };
        let text = render("coder (12s)", &asked, "");
        insta::assert_snapshot!(text, @r"
        coder (12s) asks for permission: Bash
          │ command: rm -r x\x1b[2J
          │ > Yes
          │ - No
          (the screen shows only a part of it)
          why you are asked: no rule speaks
          answer with:
            missiond confirm coder yes --dialog d-7
            missiond confirm coder always --dialog d-7
            missiond confirm coder no --dialog d-7 --reason 'why not'
        ");
    }

    #[test]
    fn always_is_offered_only_if_it_is_known_to_add_a_rule() {
        let dialog = dialog("permission", json!([{"label": "Yes"}, {"label": "No"}]));
        let rule = Always::from(Ok("Bash(make)".to_owned()));
        let none = Always::from(Err("an ask rule beats it".to_owned()));
        for (always, offered) in [(Some(&rule), true), (Some(&none), false), (None, false)] {
            let asked = Asked {
                always,
                ..Asked::new("coder", &dialog)
            };
            let commands = commands(&asked, "").join("\n");
            assert_eq!(commands.contains(" always "), offered, "{always:?}");
        }
    }

    #[test]
    fn what_is_asked_ends_where_the_options_begin() {
        let mut dialog = dialog("trust", json!([{"label": "No, exit"}, {"label": "Yes"}]));
        dialog.text =
            " Is this folder yours?\n────\n\n ❯ No, exit\n   Yes\n\n Enter to confirm".into();
        assert_eq!(question(&dialog), "Is this folder yours?");
    }

    #[test]
    fn a_question_is_answered_by_label() {
        let dialog = dialog(
            "question",
            json!([{"label": "Red"}, {"label": "It's blue; rm"}]),
        );
        assert_eq!(
            commands(&Asked::new("coder", &dialog), " -c x"),
            [
                "missiond confirm -c x coder Red --dialog d-7",
                r"missiond confirm -c x coder 'It'\''s blue; rm' --dialog d-7",
            ]
        );
    }

    #[test]
    fn words_of_ones_own_have_a_flag() {
        let options =
            json!([{"label": "Red", "number": 1}, {"label": "Type something.", "number": 2}]);
        let dialog = dialog("question", options);
        assert_eq!(
            commands(&Asked::new("coder", &dialog), "")[1],
            "missiond confirm coder --text 'your words' --dialog d-7"
        );
    }

    #[test]
    fn a_view_without_options_is_for_the_keyboard_or_left() {
        let dialog = dialog("other", json!([]));
        assert_eq!(
            commands(&Asked::new("coder", &dialog), "")[..2],
            ["missiond attach coder", "missiond interrupt coder"]
        );
    }
}
