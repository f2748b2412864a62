//! The tabs of sessions and tasks on the screen: a table, and below it the row under the cursor.

use super::columns::{fit, left, right};
use super::{Canvas, line_of};
use crate::cli::columns::wrapped;
use crate::cli::sanitise;
use crate::cli::top::lists::{ListRow, Tab};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use unicode_width::UnicodeWidthStr;

const AGE: usize = 7;
/// The widest columns beside the text.
const MOST: [usize; 3] = [20, 24, 14];

impl Canvas<'_, '_> {
    /// The names of the tabs, the shown one marked.
    pub(super) fn tabs(&self) -> Vec<Span<'static>> {
        let shown = self.dashboard.lists().tab();
        let name = |tab: Tab| match tab == shown {
            true => Span::styled(format!("[{}] ", tab.name()), Modifier::BOLD),
            false => Span::styled(format!(" {}  ", tab.name()), self.dim()),
        };
        Tab::ALL.into_iter().map(name).collect()
    }

    pub(super) fn list(&mut self, area: Rect) {
        let rows = self.dashboard.lists().rows(self.look.now);
        let cursor = self.dashboard.lists().cursor();
        let most = area.height.saturating_sub(8).max(area.height / 2);
        let height = u16::try_from(rows.len()).unwrap_or(u16::MAX);
        let height = height.saturating_add(2).min(most);
        let [table, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
        self.list_rows(table, &rows, cursor);
        if let Some(row) = rows.get(cursor) {
            self.list_details(below, row);
        }
    }

    fn list_rows(&mut self, area: Rect, rows: &[ListRow], cursor: usize) {
        let tab = self.dashboard.lists().tab();
        if rows.is_empty() {
            let text = format!("   no {}", tab.name());
            return self.text(line_of(area, 1), Line::raw(text));
        }
        let widest = |name: fn(&ListRow) -> &str, most: usize| {
            let widths = rows.iter().map(|row| name(row).width());
            widths.max().unwrap_or(0).clamp(5, most)
        };
        let [id, state, who] = [
            widest(|row| &row.id, MOST[0]),
            widest(|row| &row.state, MOST[1]),
            widest(|row| &row.who, MOST[2]),
        ];
        let rest = usize::from(area.width).saturating_sub(id + state + who + AGE + 8);
        let line = |cells: [&str; 5]| {
            let [name, how, age, whose, text] = cells.map(sanitise::one_line);
            let [name, how] = [left(&name, id), left(&how, state)];
            let [age, whose] = [right(&age, AGE), left(&whose, who)];
            format!("{name} {how} {age}  {whose} {}", fit(&text, rest.max(8)))
        };
        let whose = if tab == Tab::Tasks { "FOR" } else { "OWNER" };
        let head = line(["ID", "STATE", "AGE", whose, "TEXT"]);
        self.text(
            line_of(area, 0),
            Line::styled(format!("  {head}"), self.dim()),
        );
        let room = usize::from(area.height.saturating_sub(1));
        let first = (cursor + 1).saturating_sub(room);
        for (index, row) in rows.iter().enumerate().skip(first).take(room) {
            let cells = [&row.id, &row.state, &row.age, &row.who, &row.text];
            let text = line(cells.map(String::as_str));
            let style = match row.is_urgent {
                true => self.colour(Color::Yellow).add_modifier(Modifier::BOLD),
                false => Style::default(),
            };
            let (pointer, style) = match (index == cursor, self.look.ascii) {
                (true, true) => ("> ", style.add_modifier(Modifier::REVERSED)),
                (true, false) => ("▸ ", style.add_modifier(Modifier::REVERSED)),
                (false, _) => ("  ", style),
            };
            let shown = Line::styled(format!("{pointer}{text}"), style);
            self.text(line_of(area, index - first + 1), shown);
        }
    }

    fn list_details(&mut self, area: Rect, row: &ListRow) {
        let rule = self.rule(&format!("{}, {}", row.id, row.state), "", area.width);
        self.text(line_of(area, 0), rule);
        let width = usize::from(area.width).saturating_sub(10).max(10);
        let mut lines = Vec::new();
        for (label, text) in &row.details {
            let mut label = Some(*label);
            for line in sanitise::request(text).lines() {
                for row in wrapped(line, width) {
                    let label = label.take().unwrap_or_default();
                    lines.push(Line::raw(format!(" {label:<7} {row}")));
                }
            }
        }
        let inner = Rect {
            y: area.y.saturating_add(1),
            height: area.height.saturating_sub(1),
            ..area
        };
        self.frame.render_widget(Paragraph::new(lines), inner);
    }
}
