//! The rows of the table in `tables/options.toml`, which people can read and extend.

use super::table::{Danger, Row};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Entry {
    names: String,
    short: String,
    valued: String,
    long: String,
    words: String,
    text: String,
    starts: String,
    subcommands: String,
    always: bool,
    why: String,
}

/// The rows, parsed once and kept for the life of the program.
pub fn rows() -> Vec<Row> {
    let file: Result<File, _> = toml::from_str(include_str!("../tables/options.toml"));
    // A test proves that the file can be parsed.
    let entries = file.map_or_else(|_| Vec::new(), |file| file.program);
    entries.into_iter().map(row).collect()
}

fn row(entry: Entry) -> Row {
    let why = kept(entry.why);
    let danger = match () {
        () if entry.always => Danger::Always(why),
        () if !entry.words.is_empty() => Danger::Words(kept(entry.words), why),
        () if !entry.starts.is_empty() => Danger::Starts(kept(entry.starts), why),
        () if !entry.text.is_empty() => Danger::Text(kept(entry.text), why),
        () if !entry.subcommands.is_empty() => Danger::Subcommands(kept(entry.subcommands), why),
        () => Danger::Options {
            short: kept(entry.short),
            long: kept(entry.long),
            valued: kept(entry.valued),
            why,
        },
    };
    Row {
        programs: kept(entry.names),
        danger,
    }
}

/// Keeps a text of a table for the life of the program.
pub fn kept(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_can_be_read_and_each_row_says_something() {
        let file: File =
            toml::from_str(include_str!("../tables/options.toml")).expect("a good file");
        for entry in &file.program {
            let lists = [
                &entry.short,
                &entry.long,
                &entry.words,
                &entry.text,
                &entry.starts,
                &entry.subcommands,
            ];
            let says = lists.iter().filter(|list| !list.is_empty()).count();
            let is_options = !entry.short.is_empty() && !entry.long.is_empty();
            assert!(
                entry.always || says == 1 || is_options && says == 2,
                "{}",
                entry.names
            );
            // "`-x` lets git run another program", "`git x` runs another program"
            let is_let = !entry.text.is_empty()
                || is_options
                || !entry.short.is_empty()
                || !entry.long.is_empty();
            let verb = entry.why.split(' ').next().unwrap_or_default();
            assert_eq!(
                verb.ends_with('s'),
                !is_let,
                "{}: {}",
                entry.names,
                entry.why
            );
            assert!(
                !entry.names.is_empty() && !entry.why.is_empty(),
                "{}",
                entry.names
            );
        }
        assert_eq!(rows().len(), file.program.len());
    }
}
