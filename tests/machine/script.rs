//! A script as text: scenarios, each with the lines that go in and those that come out.

/// From `scenario:` to the next one.
#[derive(Debug)]
pub struct Scenario {
    pub file: String,
    pub steps: Vec<Step>,
}

/// A line in, and the lines out.
#[derive(Debug)]
pub struct Step {
    /// Counted from 1.
    pub line: usize,
    pub input: String,
    pub expected: Vec<String>,
}

pub fn read(file: &str, text: &str) -> Vec<Scenario> {
    let mut scenarios: Vec<Scenario> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.starts_with("scenario:") {
            scenarios.push(Scenario {
                file: file.to_owned(),
                steps: Vec::new(),
            });
            continue;
        }
        let scenario = scenarios.last_mut();
        let scenario = scenario.unwrap_or_else(|| panic!("{file}:{number}: no scenario yet"));
        match (line.strip_prefix("->"), scenario.steps.last_mut()) {
            (Some(expected), Some(step)) => step.expected.push(expected.trim().to_owned()),
            (Some(_), None) => panic!("{file}:{number}: nothing goes in before this comes out"),
            (None, _) => scenario.steps.push(Step {
                line: number,
                input: line.to_owned(),
                expected: Vec::new(),
            }),
        }
    }
    scenarios
}

/// The words of a line; what stands between quotes is one, and `\"` in it is a quote.
pub fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            '\\' if quoted => word.get_or_insert_default().extend(chars.next()),
            ' ' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
