//! The figures for people and for programs.

use crate::measure::{Figures, median};
use serde_json::{Map, Value, json};

const OWN: &str = "missiond";
const OTHERS: [&str; 2] = ["tmux", "floor"];

/// Each row with the medians, and what missiond is to each of the others.
pub fn print(figures: &Figures) {
    print!("{:<58} {OWN:>9}", "");
    OTHERS
        .iter()
        .for_each(|who| print!(" {who:>9} {:>6}", "ratio"));
    println!();
    for (row, by_name) in &figures.rows {
        let of = |who: &str| by_name.get(who).map(|all| median(all));
        print!("{:<58} {:>9}", row.name(), shown(of(OWN)));
        for who in OTHERS {
            let ratio = by_name
                .get(OWN)
                .zip(by_name.get(who))
                .map(|(own, other)| median(&ratios(own, other)));
            print!(" {:>9} {:>6}", shown(of(who)), shown(ratio));
        }
        println!();
    }
}

fn ratios(own: &[f64], other: &[f64]) -> Vec<f64> {
    own.iter()
        .zip(other)
        .map(|(own, other)| own / other)
        .collect()
}

fn shown(figure: Option<f64>) -> String {
    match figure {
        Some(figure) if figure >= 100.0 => format!("{figure:.0}"),
        Some(figure) => format!("{figure:.2}"),
        None => "-".to_owned(),
    }
}

pub fn json(figures: &Figures) -> String {
    let rows = figures.rows.iter().map(|(row, by_name)| {
        let of = by_name.iter().map(|(who, all)| {
            let figure = json!({"median": median(all), "rounds": all});
            ((*who).to_owned(), figure)
        });
        json!({
            "what": row.name(),
            "larger_is_better": row.is_rate(),
            "figures": of.collect::<Map<String, Value>>(),
        })
    });
    let rows: Vec<Value> = rows.collect();
    format!("{:#}\n", json!({ "rows": rows }))
}
