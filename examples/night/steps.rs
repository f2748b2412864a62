//! What happens in the night, one step at a time.

use super::Dice;
use super::place::{Place, Sent};
use anyhow::ensure;
use missiond::lab::rehearsal::Step as Scripted;
use serde_json::{Value, json};
use std::fmt;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub enum Step {
    /// A message, whose answer nobody waits for yet.
    Send(String),
    /// A call about which a person is asked, and the person's answer.
    Dialog {
        slot: String,
        allow: bool,
    },
    KillProgram(String),
    KillShim(String),
    KillDaemon,
    /// The client of a message is killed; the turn goes on.
    KillClient,
    Stop(String),
    Start(String),
    Restart(String),
    Reload,
    /// The runtime directory, as at a logout.
    LoseSockets,
    LoseControlSocket,
    FillDisk,
    FreeDisk,
    /// The disk of the logs does not answer for a while.
    HangDisk(String),
    Rest,
}

/// A command that waits for a disk which hangs takes longer than this.
const SOON: Duration = Duration::from_secs(20);

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let about = match self {
            Step::Dialog { slot, allow } => {
                format!("{slot}, {}", if *allow { "yes" } else { "no" })
            }
            Step::Send(slot)
            | Step::KillProgram(slot)
            | Step::KillShim(slot)
            | Step::Stop(slot)
            | Step::Start(slot)
            | Step::Restart(slot)
            | Step::HangDisk(slot) => slot.clone(),
            _ => String::new(),
        };
        write!(f, "{} {about}", self.kind())
    }
}

fn one_of(dice: &mut Dice, names: &[String]) -> String {
    names[dice.below(names.len())].clone()
}

impl Step {
    /// A step of a kind that is not left out.
    pub fn choose(dice: &mut Dice, place: &Place, left_out: &[String]) -> Step {
        loop {
            let step = Step::any(dice, place);
            if !left_out.iter().any(|kind| kind == step.kind()) {
                return step;
            }
        }
    }

    fn any(dice: &mut Dice, place: &Place) -> Step {
        if place.full {
            // What is refused on a full disk is refused for as long as it is full.
            return match dice.below(3) {
                0 => Step::Send(one_of(dice, &place.claudes)),
                1 => Step::KillDaemon,
                _ => Step::FreeDisk,
            };
        }
        if let Some(slot) = place.stopped.iter().next()
            && dice.below(3) == 0
        {
            return Step::Start(slot.clone());
        }
        match dice.below(100) {
            0..25 => Step::Send(one_of(dice, &place.claudes)),
            25..45 => Step::Dialog {
                slot: one_of(dice, &place.claudes),
                allow: dice.below(2) == 0,
            },
            45..52 => Step::KillProgram(one_of(dice, &place.slots())),
            52..57 => Step::KillShim(one_of(dice, &place.slots())),
            57..68 => Step::KillDaemon,
            68..72 => Step::KillClient,
            72..76 => Step::Stop(one_of(dice, &place.slots())),
            76..80 => Step::Restart(one_of(dice, &place.slots())),
            80..85 => Step::Reload,
            85..88 => Step::LoseSockets,
            88..91 => Step::LoseControlSocket,
            91..94 if place.has_small_disk() => Step::FillDisk,
            94..97 if place.can_freeze_disk() => Step::HangDisk(one_of(dice, &place.slots())),
            _ => Step::Rest,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            Step::Send(_) => "send",
            Step::Dialog { .. } => "dialog",
            Step::KillProgram(_) => "kill program",
            Step::KillShim(_) => "kill shim",
            Step::KillDaemon => "kill daemon",
            Step::KillClient => "kill client",
            Step::Stop(_) => "stop",
            Step::Start(_) => "start",
            Step::Restart(_) => "restart",
            Step::Reload => "reload",
            Step::LoseSockets => "lose sockets",
            Step::LoseControlSocket => "lose control socket",
            Step::FillDisk => "fill disk",
            Step::FreeDisk => "free disk",
            Step::HangDisk(_) => "hang disk",
            Step::Rest => "rest",
        }
    }

    pub fn take(&self, place: &mut Place, dice: &mut Dice) -> anyhow::Result<()> {
        match self {
            Step::Send(slot) => {
                let text = format!("Night message {} for {slot}", place.next());
                let answer = format!("You said: {text}");
                send(place, slot, text, Some(answer))?;
            }
            Step::Dialog { slot, allow } => dialog(place, slot, *allow)?,
            Step::KillProgram(slot) => kill(program_of(place, slot)?),
            Step::KillShim(slot) => kill(program_of(place, slot)?.and_then(parent_of)),
            Step::KillDaemon => place.crash()?,
            Step::KillClient => {
                if !place.sent.is_empty() {
                    let mut sent = place.sent.swap_remove(dice.below(place.sent.len()));
                    sent.client.kill()?;
                    sent.client.wait()?;
                }
            }
            Step::Stop(slot) => {
                if place.run(&["stop", slot])?.status.success() {
                    place.stopped.insert(slot.clone());
                }
            }
            Step::Start(slot) => {
                place.run(&["start", slot])?;
                place.stopped.remove(slot);
            }
            Step::Restart(slot) => {
                place.run(&["restart", slot])?;
                place.stopped.remove(slot);
            }
            Step::Reload => {
                let file = place.root().join("policies/night.toml");
                let text = fs::read_to_string(&file)?;
                fs::write(&file, format!("# {}\n{text}", place.next()))?;
                place.run(&["reload"])?;
            }
            Step::LoseSockets => fs::remove_dir_all(place.root().join("run/missiond"))?,
            Step::LoseControlSocket => lose_control_socket(place)?,
            Step::FillDisk => {
                place.full = true;
                let file = place.root().join("logs/fill");
                let mut fill = Command::new("dd");
                fill.args(["if=/dev/zero", "bs=64k"]);
                fill.arg(format!("of={}", file.display()));
                fill.stderr(Stdio::null()).status()?;
            }
            Step::FreeDisk => {
                fs::remove_file(place.root().join("logs/fill"))?;
                place.full = false;
            }
            Step::HangDisk(slot) => {
                let rest = Duration::from_secs(dice.below(8) as u64);
                place.while_frozen(|| hang_disk(place, slot, rest))?;
            }
            Step::Rest => std::thread::sleep(Duration::from_secs(dice.below(5) as u64)),
        }
        // At times the next step comes at once, at times what this one began is done by then.
        std::thread::sleep(Duration::from_millis(dice.below(2000) as u64));
        Ok(())
    }
}

fn send(place: &mut Place, slot: &str, text: String, answer: Option<String>) -> anyhow::Result<()> {
    let id = format!("night-{}", place.next());
    let client = place
        .missiond(&["send", slot, &text, "--id", &id, "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    place.messages.insert(text.clone());
    place.sent.push(Sent {
        text,
        answer,
        client,
    });
    Ok(())
}

/// Has Claude Code ask for a file, and answers once `pending` shows that very call.
fn dialog(place: &mut Place, slot: &str, allow: bool) -> anyhow::Result<()> {
    let file = format!("made-{}", place.next());
    let text = format!("Please make {file} in {slot}");
    let input = json!({"command": format!("touch {file}"), "description": "Makes a file"});
    let script = vec![
        Scripted::tool("Bash", input),
        Scripted::text("I have tried."),
    ];
    place.endpoint.on(&text, script);
    send(place, slot, text, None)?;
    let end = Instant::now() + Duration::from_secs(20);
    while Instant::now() < end {
        std::thread::sleep(Duration::from_millis(300));
        let output = place.run(&["pending", "--json"])?;
        let pending: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let of_slot = pending.iter().find(|one| one["slot"] == *slot);
        let Some(asked) = of_slot else { continue };
        // An older dialog, left by a step before: a person says no.
        let is_it = asked["dialog"]["text"]
            .as_str()
            .is_some_and(|text| text.contains(&format!("touch {file}")));
        let id = asked["dialog"]["id"].as_str().unwrap_or_default();
        let answer = if is_it && allow { "yes" } else { "no" };
        if is_it && allow {
            // Known before it is said: a client that is killed may have said it.
            place.allowed.insert(format!("{slot}/{file}"));
        }
        place.run(&["confirm", slot, answer, "--dialog", id])?;
        if is_it {
            break;
        }
    }
    Ok(())
}

/// While the disk of the logs hangs, nobody waits for it.
fn hang_disk(place: &Place, slot: &str, rest: Duration) -> anyhow::Result<()> {
    let commands = [&["status"][..], &["interrupt", slot], &["pending"]];
    for command in commands.into_iter().cycle().take(2 * commands.len()) {
        let began = Instant::now();
        place.run(command)?;
        let took = began.elapsed();
        ensure!(took < SOON, "{command:?} took {took:?} while the disk hung");
        std::thread::sleep(rest / 6);
    }
    Ok(())
}

fn lose_control_socket(place: &Place) -> anyhow::Result<()> {
    for entry in fs::read_dir(place.root().join("run/missiond"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".sock") && !path.is_dir() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn program_of(place: &Place, slot: &str) -> anyhow::Result<Option<u32>> {
    let status = place.status()?;
    let of_slot = status.iter().find(|one| one["slot"] == *slot);
    let pid = of_slot.and_then(|one| one["pid"].as_u64());
    Ok(pid.and_then(|pid| u32::try_from(pid).ok()))
}

pub fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let after_name = stat.get(stat.rfind(')')? + 2..)?;
    after_name.split(' ').nth(1)?.parse().ok()
}

fn kill(pid: Option<u32>) {
    let pid = pid.and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid
        .filter(|pid| *pid > 1)
        .and_then(rustix::process::Pid::from_raw)
    {
        // It may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
