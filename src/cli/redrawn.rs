//! `--watch`: the same rows again each second, drawn over those before.

use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::core::text::redraw;
use anstream::adapter::strip_str;
use std::io::IsTerminal;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often it looks: the ages in a table count seconds.
const AGAIN: Duration = Duration::from_secs(1);

/// Draws the rows until Ctrl-C. What reads a pipe wants events, and not the same again each second.
pub async fn each_second(
    context: &Context,
    rows: impl AsyncFn() -> Result<Vec<String>, Failure>,
) -> Result<(), Failure> {
    if context.out.json || !std::io::stdout().is_terminal() {
        return Err(Failure::usage("--watch draws on a terminal")
            .next("what happens, as lines of JSON: missiond events -f"));
    }
    // From here on, so that Ctrl-C ends it in order whenever it comes.
    let ended = signal(SignalKind::interrupt());
    let mut ended = ended.map_err(|error| Failure::failed(format!("no Ctrl-C: {error}")))?;
    let mut drawn = 0;
    loop {
        let mut rows = rows().await?;
        let room = crossterm::terminal::size().map_or(24, |(_, rows)| usize::from(rows));
        // The last row is the cursor's.
        rows.truncate(room.saturating_sub(1));
        if anstream::AutoStream::choice(&std::io::stdout()) == anstream::ColorChoice::Never {
            rows.iter_mut()
                .for_each(|row| *row = strip_str(row).to_string());
        }
        context.out.raw(redraw::over(drawn, &rows).as_bytes())?;
        drawn = rows.len();
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            _ = ended.recv() => return Ok(()),
        }
    }
}
