//! Files in `tables/` about programs: each row applies to all the programs that it names.

use crate::core::policy::quick::QuickMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A file with one list of rows.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<R> {
    program: Vec<R>,
}

pub type ByName<R> = QuickMap<&'static str, &'static R>;

/// Parses the rows of a file with one list. A test of each table proves that its file can be parsed.
pub fn read<R: DeserializeOwned>(file: &str) -> Result<Vec<R>, toml::de::Error> {
    toml::from_str(file).map(|File { program }| program)
}

/// The rows by the names of their programs, kept for the life of the program.
pub fn by_name<R>(rows: Vec<R>, names: fn(&R) -> &str) -> ByName<R> {
    let rows: &'static [R] = Vec::leak(rows);
    let of_row = |row: &'static R| {
        let names = names(row).split_ascii_whitespace();
        names.map(move |name| (name, row))
    };
    rows.iter().flat_map(of_row).collect()
}
