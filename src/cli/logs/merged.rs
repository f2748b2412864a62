//! The logs of several slots as one, in the order of their times.

use super::file_of;
use crate::cli::failure::Failure;
use crate::cli::follow::{Changes, Which, unreadable};
use crate::cli::reader;
use crate::cli::tail::{Since, Tail, time_of};
use crate::lookback;
use chrono::{DateTime, Utc};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// The log of one slot.
struct MergedLog {
    slot: String,
    tail: Tail,
    since: Since,
    /// Lines that are read and not shown yet, each with its time.
    waiting: VecDeque<(DateTime<Utc>, String)>,
    /// The time of the last line that had one: that of the lines below it too.
    time: DateTime<Utc>,
    /// All that was written when it was looked at last has been read.
    is_at_end: bool,
}

/// The logs that are shown together.
pub struct MergedLogs {
    directory: PathBuf,
    extension: &'static str,
    begin: Option<DateTime<Utc>>,
    /// Without names: also those that begin later.
    is_all: bool,
    logs: Vec<MergedLog>,
}

impl MergedLogs {
    pub fn open(
        directory: &Path,
        extension: &'static str,
        mut named: Vec<String>,
        begin: Option<DateTime<Utc>>,
    ) -> Result<MergedLogs, Failure> {
        named.sort();
        named.dedup();
        let mut logs = MergedLogs {
            directory: directory.to_path_buf(),
            extension,
            begin,
            is_all: named.is_empty(),
            logs: Vec::new(),
        };
        named.into_iter().try_for_each(|slot| logs.add(slot))?;
        logs.find_new()?;
        match logs.logs.is_empty() {
            true => Err(none(directory)),
            false => Ok(logs),
        }
    }

    /// Shows the lines that are there, and with `follow` those that are added.
    pub async fn show(
        mut self,
        which: Which,
        mut print: impl FnMut(&str, &str) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        // Watched before they are read, so that nothing comes in between.
        let changes = which
            .follow
            .then(|| Changes::watch(&self.directory.join("any.log")));
        let mut held: VecDeque<(usize, String)> = VecDeque::new();
        while let Some((index, line)) = self.next()? {
            let Some(last) = which.last else {
                print(&self.logs[index].slot, &line)?;
                continue;
            };
            held.push_back((index, line));
            if held.len() > last {
                held.pop_front();
            }
        }
        for (index, line) in held {
            print(&self.logs[index].slot, &line)?;
        }
        let Some(mut changes) = changes else {
            return Ok(());
        };
        reader::while_read(async {
            loop {
                changes.next().await;
                self.look_again()?;
                while let Some((index, line)) = self.next()? {
                    print(&self.logs[index].slot, &line)?;
                }
            }
        })
        .await
    }

    fn look_again(&mut self) -> Result<(), Failure> {
        self.logs.iter_mut().for_each(|log| log.is_at_end = false);
        self.find_new()
    }

    fn find_new(&mut self) -> Result<(), Failure> {
        if !self.is_all {
            return Ok(());
        }
        let mut found = lookback::logged(&self.directory);
        found.retain(|slot| self.logs.iter().all(|log| log.slot != *slot));
        found.sort();
        // One of them may be no log that can be shown, such as a link; the others are.
        found.into_iter().for_each(|slot| drop(self.add(slot)));
        Ok(())
    }

    fn add(&mut self, slot: String) -> Result<(), Failure> {
        let file = file_of(&self.directory, &slot, self.extension)?;
        let tail = Tail::open(&file).map_err(|error| unreadable(&file, &error))?;
        self.logs.push(MergedLog {
            slot,
            tail,
            since: Since::new(self.begin),
            waiting: VecDeque::new(),
            time: DateTime::UNIX_EPOCH,
            is_at_end: false,
        });
        Ok(())
    }

    /// The oldest line that was not shown yet, with the index of its log.
    fn next(&mut self) -> Result<Option<(usize, String)>, Failure> {
        self.logs.iter_mut().try_for_each(MergedLog::fill)?;
        let first = self.logs.iter().enumerate();
        let first = first.filter_map(|(index, log)| Some((log.waiting.front()?.0, index)));
        let Some((_, index)) = first.min() else {
            return Ok(None);
        };
        let line = self.logs[index].waiting.pop_front();
        Ok(line.map(|(_, line)| (index, line)))
    }
}

impl MergedLog {
    /// Reads on if nothing waits.
    fn fill(&mut self) -> Result<(), Failure> {
        while self.waiting.is_empty() && !self.is_at_end {
            let lines = self.tail.lines();
            let lines = lines.map_err(|error| unreadable(self.tail.path(), &error))?;
            self.is_at_end = lines.is_empty();
            for line in lines {
                self.time = time_of(&line).unwrap_or(self.time);
                if self.since.keeps(&line) {
                    self.waiting.push_back((self.time, line));
                }
            }
        }
        Ok(())
    }
}

fn none(directory: &Path) -> Failure {
    let text = format!("no slot has a log in {} yet", directory.display());
    Failure::usage(text).next("name another config with -c FILE")
}
