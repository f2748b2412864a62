//! The answer of a turn, from the transcript of the slot's own session.

use crate::core::claude::transcript;
use crate::core::machine::Answer;
use crate::os::blocking;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub transcript: PathBuf,
    pub offset: u64,
}

impl Place {
    /// The end of the file as it is now; its beginning where it does not exist yet.
    pub fn end_of(transcript: &Path) -> Place {
        let offset = std::fs::metadata(transcript).map_or(0, |meta| meta.len());
        Place {
            transcript: transcript.to_owned(),
            offset,
        }
    }
}

/// Waits for the turn's last line. Where the transcript has none, the answer comes from what was on the screen.
pub async fn find(place: Option<Place>, on_screen: Option<String>, failed: bool) -> Answer {
    let patience = if failed { SHORT_PATIENCE } else { PATIENCE };
    let looked = match place {
        Some(place) => look_for_end(&place, patience).await,
        None => transcript::Ending::default(),
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

async fn look_for_end(place: &Place, patience: Duration) -> transcript::Ending {
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        let ending = ending_at(place.clone()).await;
        if ending.is_whole || tokio::time::Instant::now() >= deadline {
            return ending;
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How the turn ends by now. The file may be large or on a file system that does not answer: a thread reads it.
async fn ending_at(place: Place) -> transcript::Ending {
    let read = move || read_from(&place).map(|text| transcript::ending(text.lines()));
    let ending = blocking::run(read).await.and_then(|ending| ending);
    ending.unwrap_or_default()
}

fn read_from(place: &Place) -> std::io::Result<String> {
    let mut file = std::fs::File::open(&place.transcript)?;
    let length = file.metadata()?.len();
    let start = place.offset.max(length.saturating_sub(MAX_TURN));
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(MAX_TURN).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
