//! The labels of a recording.

use crate::scenes::{Mark, Scene};
use anyhow::Result;
use missiond::reading::{Dialog, Observed};
use missiond::terminal::At;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// A moment, and what a person sees then.
pub struct Moment {
    pub t: f64,
    pub scene: String,
    pub screen: String,
    /// What is read otherwise.
    pub differences: Vec<String>,
    truth: Map<String, Value>,
}

impl Moment {
    pub fn new(scene: &Scene, mark: &Mark, now: At, observed: &Observed) -> Moment {
        let t = (now.as_secs_f64() * 1000.0).floor() / 1000.0;
        let mut truth = Map::new();
        truth.insert("t".to_owned(), json!(t));
        truth.insert("note".to_owned(), json!(scene.name));
        truth.insert("state".to_owned(), json!(mark.state));
        let dialog = observed.dialog.as_ref();
        truth.insert("dialog".to_owned(), expected_dialog(mark, dialog));
        let told = [
            ("draft", json!(mark.draft)),
            ("menu", json!(mark.menu)),
            ("mode", json!(mark.mode)),
            ("background", json!(mark.background)),
        ];
        truth.extend(
            told.into_iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(key, value)| (key.to_owned(), value)),
        );
        if mark.error == Some(true) {
            truth.insert("last_error".to_owned(), json!(observed.reading.last_error));
        }
        Moment {
            t,
            scene: scene.name.clone(),
            screen: String::new(),
            differences: differences(mark, observed),
            truth,
        }
    }

    pub fn seen(self, screen: String) -> Moment {
        Moment { screen, ..self }
    }
}

/// What the mark says, with the labels as they are read.
fn expected_dialog(mark: &Mark, dialog: Option<&Dialog>) -> Value {
    let Some(kind) = &mark.kind else {
        return Value::Null;
    };
    let labels = |dialog: &Dialog| -> Vec<String> {
        dialog
            .options
            .iter()
            .map(|choice| choice.label.clone())
            .collect()
    };
    let mut expected = Map::new();
    expected.insert("kind".to_owned(), json!(kind));
    let tool = if mark.cut {
        dialog.and_then(|dialog| dialog.tool.clone())
    } else {
        mark.tool.clone()
    };
    expected.insert("tool".to_owned(), json!(tool));
    if mark.target.is_some() && !mark.cut {
        expected.insert("target".to_owned(), json!(shown_target(mark, dialog)));
    }
    expected.insert(
        "options".to_owned(),
        json!(dialog.map(labels).unwrap_or_default()),
    );
    expected.insert(
        "selected".to_owned(),
        json!(dialog.and_then(|dialog| dialog.selected)),
    );
    expected.insert(
        "complete".to_owned(),
        json!(dialog.is_some_and(|dialog| dialog.complete)),
    );
    let checks = dialog.map_or(Vec::new(), |dialog| {
        dialog
            .options
            .iter()
            .filter_map(|choice| choice.checked)
            .collect()
    });
    if !checks.is_empty() {
        expected.insert("checked".to_owned(), json!(checks));
    }
    Value::from(expected)
}

/// A path may be shown whole or from the working directory.
fn shown_target(mark: &Mark, dialog: Option<&Dialog>) -> Option<String> {
    let wanted = mark.target.as_deref()?;
    let values = dialog
        .and_then(|dialog| dialog.input.as_ref())
        .into_iter()
        .flat_map(Map::values);
    let mut texts = values.filter_map(Value::as_str);
    let fits = |text: &&str| *text == wanted || text.ends_with(&format!("/{wanted}"));
    Some(texts.find(fits).unwrap_or(wanted).to_owned())
}

fn differences(mark: &Mark, observed: &Observed) -> Vec<String> {
    let mut found = Vec::new();
    let state = observed.state.name();
    let busy = ["thinking", "responding", "tool_running"].contains(&state);
    if mark.state != state && !(mark.state == "busy" && busy) {
        found.push(format!(
            "state is {state}, not {}; {:?}",
            mark.state, observed.reading.because
        ));
    }
    let reading = &observed.reading;
    let draft = reading
        .composer
        .as_ref()
        .map(|composer| composer.draft.clone());
    let mut check = |what: &str, wanted: Value, is: Value| {
        if !wanted.is_null() && wanted != is {
            found.push(format!("{what} is {is}, not {wanted}"));
        }
    };
    check("draft", json!(mark.draft), json!(draft));
    let menu = reading.composer.as_ref().map(|composer| composer.menu);
    check("menu", json!(mark.menu), json!(menu));
    check("mode", json!(mark.mode), json!(reading.mode));
    check(
        "background",
        json!(mark.background),
        json!(reading.background),
    );
    check(
        "error",
        json!(mark.error),
        json!(reading.last_error.is_some()),
    );
    let dialog = observed.dialog.as_ref();
    check(
        "dialog",
        json!(mark.kind.is_some()),
        json!(dialog.is_some()),
    );
    if let (Some(_), Some(dialog)) = (&mark.kind, dialog) {
        check("kind", json!(mark.kind), json!(dialog.kind));
        if !mark.cut {
            check("tool", json!(mark.tool), json!(dialog.tool));
        }
        let input = json!(dialog.input).to_string();
        let target = shown_target(mark, Some(dialog));
        let shown = target.is_none_or(|target| input.contains(&json!(target).to_string()));
        check("target", json!(mark.cut || shown), json!(true));
        let whole =
            mark.cut || mark.doubtful || mark.kind.as_deref() == Some("other") || dialog.complete;
        check("whole", json!(whole), json!(true));
        if !shown || !whole {
            found.push(format!("{dialog:?}"));
        }
    }
    found
}

pub fn json(moments: &[Moment]) -> Result<String> {
    let lines: Result<Vec<String>, _> = moments
        .iter()
        .map(|moment| serde_json::to_string(&moment.truth))
        .collect();
    Ok(format!("{{\"moments\": [\n{}\n]}}\n", lines?.join(",\n")))
}

pub fn screens(moments: &[Moment]) -> String {
    let mut text = String::new();
    for moment in moments {
        let truth = Value::from(moment.truth.clone());
        let _ = writeln!(
            text,
            "======== {} {truth}\n{}\n",
            moment.scene, moment.screen
        );
    }
    text
}

/// The recording up to a second after the last moment.
pub fn cut(cast: &str, last: f64) -> String {
    let mut lines = cast.lines();
    let header = lines.next().unwrap_or_default();
    let early = |line: &&str| {
        let event: Option<(f64, Value, Value)> = serde_json::from_str(line).ok();
        event.is_some_and(|(t, code, _)| t <= last + 1.0 && (code == "o" || code == "r"))
    };
    let kept: Vec<&str> = std::iter::once(header).chain(lines.filter(early)).collect();
    kept.join("\n") + "\n"
}
