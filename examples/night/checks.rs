//! What holds after every step.

use super::place::{Place, Sent};
use super::steps::parent_of;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A slot is back by then: the longest pause between two starts, and a start on a loaded machine.
const COMES_BACK: Duration = Duration::from_secs(240);

/// More than this is a leak.
const MAX_MEMORY_KB: u64 = 400_000;

pub struct Checks {
    /// Follows the events of the whole night.
    follower: Child,
    steps: u32,
    slowest_return: Duration,
    most_memory_kb: u64,
    events: usize,
    turns: usize,
    /// Messages that were answered and stand in no transcript.
    unwritten: usize,
}

impl Checks {
    pub fn new(place: &Place) -> anyhow::Result<Checks> {
        let heard = File::create(place.root().join("events.jsonl"))?;
        let follower = place
            .missiond(&["events", "-f"])
            .stdin(Stdio::null())
            .stdout(heard)
            .stderr(File::create(place.root().join("follower.stderr"))?)
            .spawn()?;
        let mut checks = Checks {
            follower,
            steps: 0,
            slowest_return: Duration::ZERO,
            most_memory_kb: 0,
            events: 0,
            turns: 0,
            unwritten: 0,
        };
        checks.all_are_back(place)?;
        Ok(checks)
    }

    /// What does not hold, each in a line.
    pub fn after_step(&mut self, place: &mut Place) -> anyhow::Result<Vec<String>> {
        self.steps += 1;
        let mut failures = Vec::new();
        for mut sent in std::mem::take(&mut place.sent) {
            match sent.client.try_wait()? {
                None => place.sent.push(sent),
                Some(status) if status.success() => failures.extend(answered(place, sent)?),
                Some(_) => {}
            }
        }
        if !place.full {
            failures.extend(self.all_are_back(place)?);
            failures.extend(audit(place)?);
        }
        failures.extend(files(place)?);
        failures.extend(programs(place)?);
        failures.extend(self.memory(place));
        Ok(failures)
    }

    pub fn at_the_end(&mut self, place: &mut Place) -> anyhow::Result<Vec<String>> {
        if place.full {
            fs::remove_file(place.root().join("logs/fill"))?;
            place.full = false;
        }
        let mut failures = self.all_are_back(place)?;
        failures.extend(audit(place)?);
        failures.extend(self.messages(place)?);
        failures.extend(self.positions(place)?);
        if let Some(status) = self.follower.try_wait()? {
            let said = fs::read_to_string(place.root().join("follower.stderr"))?;
            failures.push(format!("the follower of events has ended: {status} {said}"));
        }
        self.follower.kill().ok();
        self.follower.wait().ok();
        Ok(failures)
    }

    pub fn figures(&self) -> String {
        format!(
            "{} steps, {} events, {} messages in conversations, {} answered ones that Claude Code lost; slowest return of a slot \
             {:.1} s, most memory of the daemon {} MB",
            self.steps,
            self.events,
            self.turns,
            self.unwritten,
            self.slowest_return.as_secs_f64(),
            self.most_memory_kb / 1000,
        )
    }

    /// Every slot is in `status` once, and what nobody has stopped runs again.
    fn all_are_back(&mut self, place: &Place) -> anyhow::Result<Vec<String>> {
        let began = Instant::now();
        loop {
            let missing = match place.status() {
                Ok(status) => away(place, &status)?,
                Err(error) => vec![error.to_string()],
            };
            if missing.is_empty() {
                self.slowest_return = self.slowest_return.max(began.elapsed());
                return Ok(Vec::new());
            }
            if began.elapsed() > COMES_BACK {
                return Ok(missing);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    fn memory(&mut self, place: &Place) -> Option<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", place.daemon_pid())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kb: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        self.most_memory_kb = self.most_memory_kb.max(kb);
        (kb > MAX_MEMORY_KB).then(|| format!("the daemon holds {kb} kB"))
    }

    /// No message stands twice in the conversations, and one whose answer missiond has read in the transcript stands there.
    /// Claude Code writes its transcript a while after the end of a turn: what it had not written when it was killed is lost,
    /// and missiond has then told the answer by the hook or the screen.
    fn messages(&mut self, place: &Place) -> anyhow::Result<Vec<String>> {
        let mut found: BTreeMap<String, usize> = BTreeMap::new();
        let projects = place.home.path().join(".claude/projects");
        for file in transcripts(&projects)? {
            for line in fs::read_to_string(file)?.lines() {
                let entry: Value = serde_json::from_str(line).unwrap_or_default();
                let text = entry["message"]["content"].as_str().unwrap_or_default();
                if entry["type"] == "user" && place.messages.contains(text) {
                    *found.entry(text.to_owned()).or_default() += 1;
                }
            }
        }
        self.turns = found.len();
        let is_lost = |text: &&String| !found.contains_key(*text);
        self.unwritten = place.answered.iter().filter(is_lost).count();
        let lost = place.written.iter().filter(is_lost);
        let lost =
            lost.map(|text| format!("{text:?} was answered in a transcript, and stands in none"));
        let lost: Vec<String> = lost.collect();
        let twice = found.into_iter().filter(|(_, count)| *count > 1);
        let twice = twice.map(|(text, count)| format!("{text:?} was sent {count} times"));
        Ok(lost.into_iter().chain(twice).collect())
    }

    /// The positions of the events go on with no gap and no double, and each message that was answered is told once.
    fn positions(&mut self, place: &Place) -> anyhow::Result<Vec<String>> {
        let heard = fs::read_to_string(place.root().join("events.jsonl"))?;
        let mut failures = Vec::new();
        let mut last: Option<u64> = None;
        let mut told: BTreeMap<String, usize> = BTreeMap::new();
        for line in heard.lines() {
            let event: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            let Some(seq) = event["seq"].as_u64() else {
                continue;
            };
            if event["event"] == "snapshot" || event["event"] == "gap" {
                last = Some(seq);
                continue;
            }
            self.events += 1;
            if event["event"] == "message" {
                let text = event["text"].as_str().unwrap_or_default();
                *told.entry(text.to_owned()).or_default() += 1;
            }
            if last.is_some_and(|last| seq != last + 1) {
                failures.push(format!("an event at {seq} follows the one at {last:?}"));
            }
            last = Some(seq);
        }
        for text in &place.answered {
            let count = told.get(text).copied().unwrap_or_default();
            if count != 1 {
                failures.push(format!(
                    "{text:?} was answered, and is {count} times in the events"
                ));
            }
        }
        Ok(failures)
    }
}

/// A client has printed its answer, which must be the one to its message.
fn answered(place: &mut Place, sent: Sent) -> anyhow::Result<Option<String>> {
    let output = sent.client.wait_with_output()?;
    let answer: Value = serde_json::from_slice(&output.stdout)?;
    if answer["source"] == "transcript" {
        place.written.insert(sent.text.clone());
    }
    let is_own = |wanted: &String| answer["response"] == *wanted;
    let is_wrong = sent.answer.is_some_and(|wanted| !is_own(&wanted));
    let wrong = is_wrong.then(|| format!("{:?} was answered with {answer}", sent.text));
    place.answered.insert(sent.text);
    Ok(wrong)
}

/// Why a slot is not as it should be.
fn away(place: &Place, status: &[Value]) -> anyhow::Result<Vec<String>> {
    let mut missing = Vec::new();
    for slot in place.slots() {
        let of_slot: Vec<&Value> = status.iter().filter(|one| one["slot"] == *slot).collect();
        let [one] = of_slot[..] else {
            missing.push(format!("{slot} is in status {} times", of_slot.len()));
            continue;
        };
        let is_up = one["pid"].is_u64();
        if place.stopped.contains(&slot) == is_up {
            // A program that was killed too often is given up, which a person ends.
            let gave_up = !is_up
                && one["last_error"]
                    .as_str()
                    .is_some_and(|why| why.contains("gave up"));
            if gave_up {
                place.run(&["start", &slot])?;
            }
            missing.push(format!(
                "{slot} is {} ({})",
                one["state"], one["last_error"]
            ));
        }
    }
    Ok(missing)
}

fn audit(place: &Place) -> anyhow::Result<Option<String>> {
    let output = place.run(&["audit", "verify"])?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok((!output.status.success()).then(|| {
        let why = String::from_utf8_lossy(&output.stderr);
        format!("audit verify: {} {said} {why}", output.status)
    }))
}

/// A file that Claude Code asked about is there only if a person has said yes.
fn files(place: &Place) -> anyhow::Result<Vec<String>> {
    let mut failures = Vec::new();
    for slot in &place.claudes {
        for entry in fs::read_dir(place.work(slot))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            let made = format!("{slot}/{name}");
            if name.starts_with("made-") && !place.allowed.contains(&made) {
                failures.push(format!("{made} was made, and nobody has allowed it"));
            }
        }
    }
    Ok(failures)
}

/// No slot has two programs. A child that has not begun its own program yet looks like its parent.
fn programs(place: &Place) -> anyhow::Result<Vec<String>> {
    let mut found: BTreeMap<u32, String> = BTreeMap::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let pid = entry.file_name().to_string_lossy().parse();
        let (Ok(pid), Ok(link), Ok(command)) = (
            pid,
            fs::read_link(entry.path().join("cwd")),
            fs::read(entry.path().join("cmdline")),
        ) else {
            continue;
        };
        let command = String::from_utf8_lossy(&command);
        let is_claude = command.contains("--session-id\0") || command.contains("--resume\0");
        let slot = place.claudes.iter().find(|slot| link == place.work(slot));
        if let Some(slot) = slot.filter(|_| is_claude) {
            found.insert(pid, slot.clone());
        }
    }
    let is_child = |pid: &u32| parent_of(*pid).is_some_and(|parent| found.contains_key(&parent));
    let mut failures = Vec::new();
    for slot in &place.claudes {
        let of_slot = found.iter().filter(|(_, of)| *of == slot);
        let pids: Vec<&u32> = of_slot.map(|(pid, _)| pid).collect();
        let pids: Vec<&u32> = pids.into_iter().filter(|pid| !is_child(pid)).collect();
        if pids.len() > 1 {
            failures.push(format!("{slot} has {} programs: {pids:?}", pids.len()));
        }
    }
    Ok(failures)
}

fn transcripts(projects: &Path) -> anyhow::Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for project in fs::read_dir(projects)? {
        for file in fs::read_dir(project?.path())? {
            let file = file?.path();
            if file.extension().is_some_and(|ext| ext == "jsonl") {
                files.push(file);
            }
        }
    }
    Ok(files)
}
