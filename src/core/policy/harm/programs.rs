//! Files of `tables/` that say something about programs: a row for those that are alike, with their names.

use crate::core::policy::quick::QuickMap;
use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<R> {
    program: Vec<R>,
}

pub type ByName<R> = QuickMap<&'static str, &'static R>;

/// The rows of a file. A test of each table holds that its file can be read.
pub fn read<R: DeserializeOwned>(file: &str) -> Result<Vec<R>, toml::de::Error> {
    toml::from_str(file).map(|File { program }| program)
}

/// The rows by the names of their programs. They are read once and live as long as the program.
pub fn by_name<R: DeserializeOwned>(file: &str, names: fn(&R) -> &str) -> ByName<R> {
    let rows: &'static [R] = Vec::leak(read(file).unwrap_or_default());
    let of_row = |row: &'static R| {
        let names = names(row).split_ascii_whitespace();
        names.map(move |name| (name, row))
    };
    rows.iter().flat_map(of_row).collect()
}
