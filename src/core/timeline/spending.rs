//! What slots have used and cost, summed up by slot, by role or by day. Pure.

use crate::core::claude::usage::Tokens;
use crate::core::text::dollars::Dollars;
use chrono::NaiveDate;
use serde::Serialize;
use std::collections::BTreeMap;

/// What is summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Slot,
    Role,
    Day,
}

/// What one slot has used or cost on one day, or a part of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    pub slot: String,
    pub role: String,
    pub day: NaiveDate,
    pub tokens: Tokens,
    /// `None` if Claude Code was not asked what it costs.
    pub dollars: Option<Dollars>,
}

/// The sum for one slot, role or day.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Spending {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day: Option<NaiveDate>,
    pub tokens: Tokens,
    /// `null` if nobody knows.
    pub dollars: Option<Dollars>,
}

impl Spending {
    fn add(&mut self, spent: &Spent) {
        self.tokens += spent.tokens;
        let so_far = self.dollars.unwrap_or(Dollars::ZERO);
        let more = spent.dollars.map(|dollars| so_far.plus(dollars));
        self.dollars = more.or(self.dollars);
    }
}

/// In the order of names or days.
pub fn summed_up(spent: &[Spent], by: By) -> Vec<Spending> {
    let mut sums = BTreeMap::<String, Spending>::new();
    for one in spent {
        let (slot, role) = (one.slot.clone(), one.role.clone());
        let (key, sum) = match by {
            By::Slot => (slot.clone(), of(Some(slot), Some(role), None)),
            By::Role => (role.clone(), of(None, Some(role), None)),
            By::Day => (one.day.to_string(), of(None, None, Some(one.day))),
        };
        sums.entry(key).or_insert(sum).add(one);
    }
    sums.into_values().collect()
}

pub fn in_all(spent: &[Spent]) -> Spending {
    let mut sum = Spending::default();
    spent.iter().for_each(|one| sum.add(one));
    sum
}

fn of(slot: Option<String>, role: Option<String>, day: Option<NaiveDate>) -> Spending {
    Spending {
        slot,
        role,
        day,
        ..Spending::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_summed_up_by_slot_by_role_and_by_day() {
        let spent = |slot: &str, role: &str, day: u32, output, dollars: Option<f64>| Spent {
            slot: slot.to_owned(),
            role: role.to_owned(),
            day: NaiveDate::from_ymd_opt(2026, 1, day).unwrap(),
            tokens: Tokens {
                output,
                ..Tokens::default()
            },
            dollars: dollars.and_then(Dollars::from_f64),
        };
        let all = [
            spent("b", "coder", 1, 10, None),
            spent("a", "coder", 1, 20, Some(0.5)),
            spent("a", "coder", 2, 30, Some(0.25)),
            spent("c", "reader", 2, 40, None),
        ];
        let shown = |by: By| {
            let sums = summed_up(&all, by).into_iter().map(|sum| {
                let name = sum.slot.or(sum.role).or(sum.day.map(|day| day.to_string()));
                let dollars = sum.dollars.map_or("-".to_owned(), |it| it.to_string());
                format!("{} {} {dollars}", name.unwrap(), sum.tokens.output)
            });
            sums.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(shown(By::Slot), "a 50 $0.75, b 10 -, c 40 -");
        assert_eq!(shown(By::Role), "coder 60 $0.75, reader 40 -");
        assert_eq!(shown(By::Day), "2026-01-01 30 $0.50, 2026-01-02 70 $0.25");
        assert_eq!(in_all(&all).tokens.output, 100);
    }
}
