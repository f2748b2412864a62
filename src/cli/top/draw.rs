//! The dashboard on the screen. Pure: it draws what [`Dashboard`] knows into a buffer.

pub mod columns;
mod hints;
mod list;

use super::card::{Arguments, Card, CardRow, INDENT, Tone};
use super::lists::Tab;
use super::state::{Dashboard, FeedState, Filter, Mode, needs_person};
use crate::cli::columns::wrapped;
use crate::cli::{ansi, sanitise, table};
use crate::core::model::SlotStatus;
use chrono::{DateTime, Local, Utc};
use columns::{CardColumns, fit, marks};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

/// From this size on, the terminal of the chosen slot has a panel of its own.
const WIDE: (u16, u16) = (140, 30);
/// The table takes no more than this share of the height, in percent, if something is shown below it.
const TABLE_SHARE: u16 = 45;

/// The height of the events on a wide screen.
const EVENTS: u16 = 8;

/// How it is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub now: DateTime<Utc>,
    /// Letters of ASCII alone.
    pub ascii: bool,
    pub colours: bool,
}

/// What the drawing found out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drawn {
    /// The request under the cursor is on the screen to its end.
    pub end_is_shown: bool,
    /// How far the whole request can be scrolled.
    pub scrolled_at_most: usize,
    /// The chosen slot's terminal is on the screen.
    pub shows_terminal: bool,
}

pub fn draw(frame: &mut Frame, dashboard: &Dashboard, look: Look) -> Drawn {
    let mut canvas = Canvas {
        frame,
        dashboard,
        look,
        drawn: Drawn::default(),
    };
    canvas.all();
    canvas.drawn
}

struct Canvas<'a, 'b> {
    frame: &'a mut Frame<'b>,
    dashboard: &'a Dashboard,
    look: Look,
    drawn: Drawn,
}

impl Canvas<'_, '_> {
    fn all(&mut self) {
        let area = self.frame.area();
        let most = if area.height >= WIDE.1 { 3 } else { 1 };
        let receipts: Vec<String> = self.dashboard.receipts(self.look.now).take(most).collect();
        let [header, body, answers, keys, last] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Min(1),
            Constraint::Length(u16::try_from(receipts.len()).unwrap_or(0)),
            Constraint::Length(2),
            Constraint::Length(1),
        ])
        .areas(area);
        self.header(header);
        match self.dashboard.mode() {
            Mode::Help(scrolled) => self.help(body, *scrolled),
            Mode::Whole(scrolled) => self.whole(body, *scrolled),
            _ if self.dashboard.lists().tab() != Tab::Slots => self.list(body),
            _ => self.body(body),
        }
        for (index, receipt) in receipts.iter().enumerate() {
            let line = fit(
                &format!(" {}", sanitise::one_line(receipt)),
                area.width.into(),
            );
            self.text(line_of(answers, index), Line::styled(line, Modifier::BOLD));
        }
        self.keys(keys);
        self.last(last);
    }

    fn body(&mut self, area: Rect) {
        let wide = area.width >= WIDE.0 && area.height >= WIDE.1;
        if !wide {
            return self.column(area, self.dashboard.shows_terminal());
        }
        let [left, right] =
            Layout::horizontal([Constraint::Percentage(62), Constraint::Fill(1)]).areas(area);
        let [column, events] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(EVENTS)]).areas(left);
        match self.dashboard.current().is_some_and(needs_person) {
            true => self.column(column, false),
            false => self.table(column),
        }
        self.events(events);
        self.terminal(right, true);
    }

    /// What happened last, the newest first: an answer can be followed here until its tool has run.
    fn events(&mut self, area: Rect) {
        let rule = self.rule("events", "", area.width);
        self.text(line_of(area, 0), rule);
        let room = usize::from(area.height.saturating_sub(1));
        let width = usize::from(area.width);
        let lines = self.dashboard.events().take(room);
        let lines: Vec<String> = lines
            .map(|event| fit(&format!(" {}", sanitise::one_line(event)), width))
            .collect();
        for (index, line) in lines.into_iter().enumerate() {
            self.text(line_of(area, index + 1), Line::raw(line));
        }
    }

    /// The table, and below it the ask or the terminal.
    fn column(&mut self, area: Rect, terminal: bool) {
        let rows = u16::try_from(self.dashboard.rows().len()).unwrap_or(u16::MAX);
        let share = (area.height * TABLE_SHARE / 100).max(4);
        let height = rows
            .saturating_add(2)
            .min(share.max(area.height.saturating_sub(18)));
        let [table, below] =
            Layout::vertical([Constraint::Length(height), Constraint::Fill(1)]).areas(area);
        self.table(table);
        if below.height < 3 {
            return;
        }
        match self.current_card(below.width) {
            Some(card) if !terminal => self.card(below, &card),
            _ => self.terminal(below, false),
        }
    }

    /// The card of the slot under the cursor, if it asks something.
    fn current_card(&self, width: u16) -> Option<Card> {
        let arguments = Arguments {
            explained: self.dashboard.explained(),
            now: self.look.now,
        };
        Card::of(self.dashboard.current()?, arguments, width.into())
    }

    fn colour(&self, colour: Color) -> Style {
        match self.look.colours {
            true => Style::default().fg(colour),
            false => Style::default(),
        }
    }

    fn dim(&self) -> Style {
        Style::default().add_modifier(Modifier::DIM)
    }

    fn text(&mut self, area: Rect, line: impl Into<Line<'static>>) {
        self.frame.render_widget(Paragraph::new(line.into()), area);
    }

    fn header(&mut self, area: Rect) {
        let count = |filter: Filter| {
            let slots = self.dashboard.slots().iter();
            slots.filter(|status| Filter::of(status) == filter).count()
        };
        let waits = count(Filter::Waits);
        let mut spans = vec![Span::styled(" missiond  ", Modifier::BOLD)];
        if area.width >= 100 || self.dashboard.lists().tab() != Tab::Slots {
            spans.extend(self.tabs());
        }
        let urgent = if waits > 0 {
            self.colour(Color::Yellow)
        } else {
            self.dim()
        };
        spans.push(Span::styled(format!("{waits} wait"), urgent));
        let rest = format!(
            "  {} work  {} idle  {} down",
            count(Filter::Works),
            count(Filter::Idle),
            count(Filter::Down)
        );
        spans.push(Span::raw(rest));
        if self.dashboard.filter() != Filter::All {
            spans.push(Span::raw(format!(
                "   only: {}",
                self.dashboard.filter().name()
            )));
        }
        if !self.dashboard.needle().is_empty() {
            let needle = sanitise::one_line(self.dashboard.needle());
            spans.push(Span::raw(format!("   filter: {needle}")));
        }
        self.text(area, Line::from(spans));
        let cost: f64 = self
            .dashboard
            .slots()
            .iter()
            .filter_map(|slot| slot.cost)
            .sum();
        let cost = if cost > 0.0 {
            format!("${cost:.2}   ")
        } else {
            String::new()
        };
        let clock = self.look.now.with_timezone(&Local).format("%H:%M:%S");
        if area.width >= 60 {
            let right = Line::from(format!("{cost}{clock} ")).right_aligned();
            self.text(area, right);
        }
    }

    fn rule(&self, left: &str, right: &str, width: u16) -> Line<'static> {
        let dash = if self.look.ascii { "-" } else { "─" };
        let width = usize::from(width);
        let right = match right {
            "" => String::new(),
            right => format!(" {right} {dash}"),
        };
        let room = width.saturating_sub(right.width() + 4);
        let left = match left {
            "" => String::new(),
            left => format!(" {} ", fit(left, room)),
        };
        let used = left.width() + right.width() + 1;
        let line = dash.repeat(width.saturating_sub(used));
        Line::styled(format!("{dash}{left}{line}{right}"), self.dim())
    }

    fn table(&mut self, area: Rect) {
        let rows = self.dashboard.rows();
        let columns = CardColumns::of(&rows, usize::from(area.width));
        let head = columns.head();
        self.text(Rect { height: 1, ..area }, Line::styled(head, self.dim()));
        let room = usize::from(area.height.saturating_sub(1));
        let cursor = self.dashboard.cursor().unwrap_or(0);
        // The last line says how many more there are.
        let fits = rows.len() <= room;
        let shown = if fits { room } else { room.saturating_sub(1) };
        let first = cursor.saturating_sub(shown.saturating_sub(1));
        let lines: Vec<Line> = rows
            .iter()
            .skip(first)
            .take(shown)
            .map(|status| self.row(status, &columns))
            .collect();
        let more = rows.len().saturating_sub(first + lines.len());
        for (index, line) in lines.into_iter().enumerate() {
            self.text(line_of(area, 1 + index), line);
        }
        if !fits {
            let dots = if self.look.ascii { "..." } else { "…" };
            let text = format!("   {dots} {first} above, {more} below (j/k)");
            self.text(line_of(area, room), Line::styled(text, self.dim()));
        }
        if rows.is_empty() {
            let text = match (self.dashboard.link(), self.dashboard.slots().is_empty()) {
                (FeedState::Live, true) => "   no slots in the config; :sessions lists sessions",
                (FeedState::Live, false) => "   no slot is like this; Esc and f show others",
                _ => "",
            };
            self.text(line_of(area, 1), Line::raw(text));
        }
    }

    fn row(&self, status: &SlotStatus, columns: &CardColumns) -> Line<'static> {
        let current = self.dashboard.current();
        let is_current = current.is_some_and(|current| current.slot == status.slot);
        let seconds = self
            .look
            .now
            .signed_duration_since(status.since)
            .num_seconds();
        let (mark, word) = marks(status, self.look.ascii);
        let style = match Filter::of(status) {
            Filter::Waits => self.urgency(seconds).add_modifier(Modifier::BOLD),
            Filter::Down => self.colour(Color::Red),
            Filter::Idle => self.dim(),
            Filter::Works | Filter::All => Style::default(),
        };
        let pointer = match (is_current, self.look.ascii) {
            (true, false) => "▸",
            (true, true) => ">",
            (false, _) => " ",
        };
        let cells = columns.row(status, word, &table::age(seconds));
        let line = Line::from(vec![
            Span::raw(pointer),
            Span::styled(format!("{mark} "), style),
            Span::styled(cells, style),
        ]);
        match is_current {
            true => line.patch_style(Style::default().add_modifier(Modifier::REVERSED)),
            false => line,
        }
    }

    /// Who waits longer is more urgent.
    fn urgency(&self, seconds: i64) -> Style {
        match seconds {
            ..60 => self.colour(Color::Yellow),
            60..300 => self.colour(Color::LightRed),
            _ => self.colour(Color::Red),
        }
    }

    fn card(&mut self, area: Rect, card: &Card) {
        let Some(status) = self.dashboard.current() else {
            return;
        };
        let heading = self.heading(status);
        let which = self.which(status);
        self.text(line_of(area, 0), self.rule(&heading, &which, area.width));
        let inner = Rect {
            y: area.y + 1,
            height: area.height - 1,
            ..area
        };
        let overlay = self.overlay(status);
        let room = usize::from(inner.height).saturating_sub(overlay.len());
        let (request, about) = (card.request.len(), card.about.len());
        // What is asked comes first; what is said of it has to fit behind it.
        let shown = request.min(room.saturating_sub(about.min(3)).max(1));
        self.drawn.end_is_shown = shown == request;
        let mut lines: Vec<Line> = card.request[..shown]
            .iter()
            .map(|row| self.card_row(row))
            .collect();
        if shown < request {
            let text = format!(
                "{:INDENT$} {} more lines: e shows all of it",
                "",
                request - shown + 1
            );
            lines.pop();
            lines.push(Line::styled(text, Modifier::BOLD));
        }
        lines.extend(card.about.iter().map(|row| self.card_row(row)));
        lines.truncate(room);
        lines.extend(overlay);
        self.frame.render_widget(Paragraph::new(lines), inner);
    }

    fn heading(&self, status: &SlotStatus) -> String {
        let seconds = self
            .look
            .now
            .signed_duration_since(status.since)
            .num_seconds();
        let answered = status.dialog.as_ref();
        let answered = answered.is_some_and(|dialog| self.dashboard.is_answered(dialog));
        let state = match answered {
            true => "answered here, its dialog is still up",
            false => "nobody has answered",
        };
        format!("{} asks, {}, {state}", status.slot, table::age(seconds))
    }

    /// `1 of 2 · d-7`.
    fn which(&self, status: &SlotStatus) -> String {
        let waiting = self.dashboard.waiting();
        let at = waiting.iter().position(|other| other.slot == status.slot);
        let id = status
            .dialog
            .as_ref()
            .map_or("", |dialog| dialog.id.as_str());
        let place = at.map_or(0, |at| at + 1);
        format!("{place} of {}  {}", waiting.len(), sanitise::one_line(id))
    }

    fn card_row(&self, row: &CardRow) -> Line<'static> {
        let style = match row.tone {
            Tone::Plain => Style::default(),
            Tone::Request => Style::default().add_modifier(Modifier::BOLD),
            Tone::Removed => self.colour(Color::Red),
            Tone::Added => self.colour(Color::Green),
            Tone::Doubt => self.colour(Color::Red).add_modifier(Modifier::BOLD),
        };
        let label = format!(" {:<width$}", row.label, width = INDENT - 1);
        let gutter = match (row.tone.is_from_slot(), self.look.ascii) {
            (true, false) => "│ ",
            (true, true) => "| ",
            (false, _) => "",
        };
        Line::from(vec![
            Span::styled(label, self.dim()),
            Span::styled(gutter, self.dim()),
            Span::styled(row.text.clone(), style),
        ])
    }

    /// What the person is asked before an answer goes out.
    fn overlay(&self, status: &SlotStatus) -> Vec<Line<'static>> {
        let bold = |text: String| Line::styled(text, Modifier::BOLD);
        match self.dashboard.mode() {
            Mode::Always => {
                let rule = status
                    .always
                    .as_ref()
                    .and_then(|always| always.rule.as_deref());
                let rule = sanitise::one_line(rule.unwrap_or_default());
                let text = format!(" a again: yes, and {}.toml allows {rule}", status.role);
                vec![bold(text), Line::raw(" any other key: back")]
            }
            Mode::Options => {
                let options = status.dialog.iter().flat_map(|dialog| &dialog.options);
                let lines = options.enumerate().map(|(index, option)| {
                    let label = sanitise::one_line(&option.label);
                    bold(format!(" {}  {label}", index + 1))
                });
                let lines = lines.take(9);
                lines
                    .chain([Line::raw(" a number chooses, any other key: back")])
                    .collect()
            }
            Mode::Alike(asks) => {
                let place = |slot: &str| {
                    let mut slots = self.dashboard.slots().iter();
                    let cwd = slots.find(|status| status.slot == slot)?.cwd.display();
                    Some(sanitise::one_line(&format!("{slot}  in {cwd}")))
                };
                let lines = asks.iter().filter_map(|(slot, _)| place(slot));
                let lines = lines.map(|line| Line::raw(format!("   {line}")));
                let text = format!(" {} ask the same, each in its directory:", asks.len());
                let keys = " y: yes to these, n: no to these, any other key: back";
                let head = [bold(text)].into_iter();
                head.chain(lines).chain([Line::raw(keys)]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The live screen of the chosen slot: the part of it that fits, the lowest rows first.
    fn terminal(&mut self, area: Rect, beside: bool) {
        self.drawn.shows_terminal = true;
        let border = u16::from(beside);
        let area = Rect {
            x: area.x + border,
            width: area.width.saturating_sub(border),
            ..area
        };
        let Some(status) = self.dashboard.current() else {
            return;
        };
        let picture = self.dashboard.picture();
        let size = picture.map(|picture| format!("{}x{}", picture.cols, picture.rows));
        let heading = format!("{} live", status.slot);
        let rule = self.rule(&heading, &size.unwrap_or_default(), area.width);
        self.text(line_of(area, 0), rule);
        let Some(picture) = picture else {
            return;
        };
        let is_blank = |line: &String| line.trim().is_empty();
        let used = picture.lines.iter().rposition(|line| !is_blank(line));
        let used = used.map_or(0, |last| last + 1);
        let room = usize::from(area.height.saturating_sub(1));
        let first = used.saturating_sub(room);
        let lines = picture.lines[first..used].iter();
        let lines: Vec<Line> = lines
            .map(|line| ansi::line(line, self.look.colours))
            .map(|line| {
                if self.look.ascii {
                    ansi::ascii(line)
                } else {
                    line
                }
            })
            .collect();
        let inner = Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(1),
            ..area
        };
        self.frame.render_widget(Paragraph::new(lines), inner);
    }

    /// The whole request, over everything but the keys.
    fn whole(&mut self, area: Rect, scrolled: usize) {
        let Some(status) = self.dashboard.current() else {
            return;
        };
        let Some(card) = self.current_card(area.width) else {
            return;
        };
        let room = usize::from(area.height.saturating_sub(1));
        let end_of_request = card.request.len();
        let rows: Vec<CardRow> = card.request.into_iter().chain(card.about).collect();
        let most = rows.len().saturating_sub(room);
        let first = scrolled.min(most);
        let last = (first + room).min(rows.len());
        let place = format!("lines {} to {last} of {}", first + 1, rows.len());
        let heading = self.heading(status);
        self.text(line_of(area, 0), self.rule(&heading, &place, area.width));
        let lines = rows[first..last].iter();
        let lines: Vec<Line> = lines.map(|row| self.card_row(row)).collect();
        let inner = Rect {
            y: area.y + 1,
            height: area.height.saturating_sub(1),
            ..area
        };
        self.frame.render_widget(Paragraph::new(lines), inner);
        self.drawn.scrolled_at_most = most;
        self.drawn.end_is_shown = last >= end_of_request;
    }

    fn help(&mut self, area: Rect, scrolled: usize) {
        self.frame.render_widget(Clear, area);
        let most = hints::HELP.len().saturating_sub(area.height.into());
        self.drawn.scrolled_at_most = most;
        let lines: Vec<Line> = hints::HELP
            .iter()
            .skip(scrolled.min(most))
            .map(|line| Line::raw(format!(" {line}")))
            .collect();
        self.frame.render_widget(Paragraph::new(lines), area);
    }

    fn keys(&mut self, area: Rect) {
        for (index, line) in hints::keys(self.dashboard, area.width, self.look.ascii)
            .into_iter()
            .enumerate()
        {
            self.text(line_of(area, index), Line::raw(line));
        }
    }

    fn last(&mut self, area: Rect) {
        let (text, style) = match self.dashboard.link() {
            FeedState::Connecting => (" connecting".to_owned(), self.dim()),
            FeedState::Live => {
                let notice = sanitise::one_line(self.dashboard.notice());
                match self.dashboard.warning().filter(|_| notice.is_empty()) {
                    Some(warning) => (format!(" {warning}"), self.colour(Color::Red)),
                    None => (format!(" live  {notice}"), self.dim()),
                }
            }
            FeedState::Lost(why) => {
                let why = sanitise::one_line(why);
                let text = format!(" DAEMON AWAY: {why}; what is shown is old. Slots live on.");
                (text, self.colour(Color::Red).add_modifier(Modifier::BOLD))
            }
        };
        let width = usize::from(area.width);
        let mut lines = wrapped(&text, width.max(10));
        // A longer text stands over the keys for the time.
        lines.truncate(usize::from(area.y.min(2)) + 1);
        let above = u16::try_from(lines.len() - 1).unwrap_or(0);
        let area = Rect {
            y: area.y - above,
            height: area.height + above,
            ..area
        };
        let lines: Vec<Line> = lines
            .into_iter()
            .map(|line| Line::styled(line, style))
            .collect();
        self.frame.render_widget(Clear, area);
        self.frame.render_widget(Paragraph::new(lines), area);
    }
}

fn line_of(area: Rect, index: usize) -> Rect {
    let index = u16::try_from(index).unwrap_or(u16::MAX);
    let y = area.y.saturating_add(index);
    let inside = index < area.height;
    Rect {
        y: if inside { y } else { area.y },
        height: u16::from(inside),
        ..area
    }
}
