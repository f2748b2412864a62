//! The answer of a turn, from the transcript of the slot's own session.

use crate::core::claude::transcript;
use crate::core::machine::Answer;
use crate::os::blocking::Worker;
use crate::os::files;
use serde::{Deserialize, Serialize};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The transcript's line comes 50 to 80 ms after the idle screen; a loaded machine gets this long.
const PATIENCE: Duration = Duration::from_secs(3);
/// Where the turn is known to have failed the file may have nothing to say, and somebody waits to be told.
const SHORT_PATIENCE: Duration = Duration::from_millis(500);
/// Between two looks at the file.
const LOOK: Duration = Duration::from_millis(15);
/// The most that is read of one turn; longer ones are read from their end.
const MAX_TURN: u64 = 64 * 1024 * 1024;

/// Where in which file the turn began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnPlace {
    pub transcript: PathBuf,
    /// `None` if the file system did not say: what is in the file may be the answer of an earlier turn.
    pub offset: Option<u64>,
}

/// Waits for the turn's last line. Where the transcript has none, the answer comes from what was on the screen.
pub async fn find(
    place: Option<TurnPlace>,
    on_screen: Option<String>,
    failed: bool,
    worker: &Worker,
) -> Answer {
    let patience = if failed { SHORT_PATIENCE } else { PATIENCE };
    let offset = place.as_ref().and_then(|place| place.offset);
    let looked = match place.zip(offset) {
        Some((place, offset)) => {
            let place = (place.transcript, offset);
            look_for_end(&place, patience, worker).await
        }
        None => transcript::TurnEnding::default(),
    };
    // A command may end with nothing to say.
    if looked.text.is_some() || looked.failure.is_some() || looked.is_whole {
        return Answer {
            text: looked.text,
            source: "transcript",
            failure: looked.failure,
        };
    }
    Answer {
        text: on_screen,
        source: "screen",
        failure: None,
    }
}

async fn look_for_end(
    place: &(PathBuf, u64),
    patience: Duration,
    worker: &Worker,
) -> transcript::TurnEnding {
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        let ending = ending_at(place.clone(), worker).await;
        if ending.is_whole || tokio::time::Instant::now() >= deadline {
            return ending;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How the turn ends by now. The file may be large or on a file system that does not answer: a thread reads it.
pub(super) async fn ending_at(
    (file, offset): (PathBuf, u64),
    worker: &Worker,
) -> transcript::TurnEnding {
    let read = move || read_from(&file, offset).map(|text| transcript::ending(text.lines()));
    let ending = worker.run(read).await.flatten();
    ending.unwrap_or_default()
}

fn read_from(file: &Path, offset: u64) -> std::io::Result<String> {
    let mut file = files::open(file)?;
    let length = file.metadata()?.len();
    let start = offset.max(length.saturating_sub(MAX_TURN));
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_TURN).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
