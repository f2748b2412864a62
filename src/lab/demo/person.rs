//! The answers of the demo: from the person at the terminal, or by default.

use super::DemoError;
use super::view::{DemoMode, View};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a person may take; then the demo continues by itself.
const PATIENCE: Duration = Duration::from_secs(20);
/// The interval at which the terminal is checked, and so the maximum delay at the end.
const LOOK: Duration = Duration::from_millis(100);
/// The delay of an answer that the demo gives by itself, so that the question can be read.
const BY_ITSELF: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
pub struct DemoPerson {
    there: bool,
}

/// A key that was pressed.
enum Pressed {
    Digit(usize),
    End,
    Nothing,
}

impl DemoPerson {
    pub fn at(mode: DemoMode) -> DemoPerson {
        DemoPerson {
            there: mode == DemoMode::Live,
        }
    }

    /// The index of the chosen answer; `usual` if the person does not answer. `None` if the person ends the demo.
    pub async fn choose(
        &self,
        view: &View,
        choices: &[&str],
        usual: usize,
    ) -> Result<Option<usize>, DemoError> {
        let nobody = || {
            let label = choices.get(usual).copied().unwrap_or_default();
            view.say(&format!("nobody answers; the demo says: {label}"))?;
            Ok(Some(usual))
        };
        if !self.there {
            tokio::time::sleep(BY_ITSELF).await;
            return nobody();
        }
        let keys = PersonKeys::listen()?;
        let end = Instant::now() + PATIENCE;
        let chosen = loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(keys);
                view.prompt(None)?;
                return nobody();
            }
            view.prompt(Some(prompt(choices, usual, left)))?;
            match keys.next().await {
                Pressed::Digit(digit) if (1..=choices.len()).contains(&digit) => {
                    break Some(digit - 1);
                }
                Pressed::End => break None,
                Pressed::Digit(_) | Pressed::Nothing => {}
            }
        };
        drop(keys);
        view.prompt(None)?;
        Ok(chosen)
    }
}

fn prompt(choices: &[&str], usual: usize, left: Duration) -> String {
    let listed: Vec<String> = choices
        .iter()
        .enumerate()
        .map(|(index, label)| format!("{} {label}", index + 1))
        .collect();
    let usual = choices.get(usual).copied().unwrap_or_default();
    format!(
        "your answer? press  {}   (in {} s: {usual})",
        listed.join("   "),
        left.as_secs() + 1
    )
}

/// The keyboard in raw mode, without echo, until it is dropped.
struct PersonKeys {
    ended: Arc<AtomicBool>,
}

impl PersonKeys {
    fn listen() -> Result<PersonKeys, DemoError> {
        crossterm::terminal::enable_raw_mode()?;
        Ok(PersonKeys {
            ended: Arc::default(),
        })
    }

    /// The next key within a moment. The thread that reads ends with this value in any case.
    async fn next(&self) -> Pressed {
        let ended = self.ended.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let mut looks = 0;
            while !ended.load(Ordering::Relaxed) && looks < 10 {
                if let Some(pressed) = look() {
                    return pressed;
                }
                looks += 1;
            }
            Pressed::Nothing
        });
        looked.await.unwrap_or(Pressed::Nothing)
    }
}

/// The meaning of the next bytes from the terminal, if any come within a moment. They are read directly: crossterm's
/// own reader never returns once the terminal is gone.
fn look() -> Option<Pressed> {
    let stdin = std::io::stdin();
    let mut ready = [PollFd::new(&stdin, PollFlags::IN)];
    let patience = Timespec::try_from(LOOK).ok()?;
    if poll(&mut ready, Some(&patience)).ok()? == 0 {
        return None;
    }
    let mut bytes = [0; 16];
    match rustix::io::read(&stdin, &mut bytes) {
        Ok(0) | Err(_) => Some(Pressed::End),
        // In raw mode the terminal sends no signal for ctrl-c and ctrl-d.
        Ok(_) if matches!(bytes[0], 0x03 | 0x04) => Some(Pressed::End),
        Ok(1) => (bytes[0] as char)
            .to_digit(10)
            .map(|digit| Pressed::Digit(digit as usize)),
        Ok(_) => None,
    }
}

impl Drop for PersonKeys {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        // If the terminal is gone, its mode can't be restored.
        let _ = crossterm::terminal::disable_raw_mode();
    }
}
