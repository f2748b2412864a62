//! A screen as a picture: one self-contained SVG, with nothing in it that a program could have made active. Pure.

use crate::cli::{ansi, sanitise};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// The size of a cell, in pixels, for a font of 14 pixels.
const CELL: (f32, f32) = (8.4, 18.0);
/// Around the screen.
const MARGIN: f32 = 12.0;
const FOREGROUND: &str = "#d8dee9";
const BACKGROUND: &str = "#1b1f27";
/// The sixteen colours that have names, dark ones first.
const NAMED: [&str; 16] = [
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9",
    "#6b7489", "#f28b94", "#b5e08d", "#f0d399", "#8cc7ff", "#d99bec", "#7fd3de", "#ffffff",
];

const ORDER: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

/// The lines of a screen, with their colours as escape sequences, as a picture of `cols` by `rows` cells.
pub fn picture(lines: &[String], cols: usize, rows: usize) -> String {
    let lines: Vec<Line> = lines.iter().map(|line| ansi::line(line, true)).collect();
    of_lines(&lines, cols, rows)
}

/// A page with this picture and nothing else. Its text can be selected and searched.
pub fn page(title: &str, picture: &str) -> String {
    let title = escaped(&sanitise::one_line(title));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n</head>\n\
         <body>\n<h1>{title}</h1>\n{picture}</body>\n</html>\n"
    )
}

/// The same for lines that are styled already.
pub fn of_lines(lines: &[Line], cols: usize, rows: usize) -> String {
    let (width, height) = (place(cols, CELL.0), place(rows, CELL.1));
    let (width, height) = (width + MARGIN, height + MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         width=\"{width:.1}\" height=\"{height:.1}\" font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, monospace\" \
         font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (row, line) in lines.iter().take(rows).enumerate() {
        draw_line(&mut svg, line, row, cols);
    }
    svg + "</svg>\n"
}

fn place(cells: usize, size: f32) -> f32 {
    MARGIN + f32::from(u16::try_from(cells).unwrap_or(u16::MAX)) * size
}

fn draw_line(svg: &mut String, line: &Line, row: usize, cols: usize) {
    let mut column = 0;
    for span in &line.spans {
        let cells = span.content.width();
        if column + cells > cols {
            return;
        }
        let (fill, behind) = colours(span.style);
        let (x, y) = (place(column, CELL.0), place(row, CELL.1));
        let length = place(cells, CELL.0) - MARGIN;
        if let Some(behind) = behind {
            let height = CELL.1;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{length:.1}\" height=\"{height}\" fill=\"{behind}\"/>"
            );
        }
        if !span.content.trim().is_empty() {
            let (look, text) = (look(span.style), escaped(&span.content));
            let base = y + 13.5;
            let _ = writeln!(
                svg,
                "<text x=\"{x:.1}\" y=\"{base:.1}\" textLength=\"{length:.1}\" lengthAdjust=\"spacingAndGlyphs\" \
                 xml:space=\"preserve\" fill=\"{fill}\"{look}>{text}</text>"
            );
        }
        column += cells;
    }
}

/// The colour of the text, and the one behind it if that differs from the background.
fn colours(style: Style) -> (String, Option<String>) {
    let front = style
        .fg
        .and_then(code)
        .unwrap_or_else(|| FOREGROUND.to_owned());
    let behind = style.bg.and_then(code);
    match style.add_modifier.contains(Modifier::REVERSED) {
        true => (behind.unwrap_or_else(|| BACKGROUND.to_owned()), Some(front)),
        false => (front, behind),
    }
}

fn look(style: Style) -> String {
    let has = |modifier| style.add_modifier.contains(modifier);
    let looks = [
        (Modifier::BOLD, " font-weight=\"bold\""),
        (Modifier::ITALIC, " font-style=\"italic\""),
        (Modifier::UNDERLINED, " text-decoration=\"underline\""),
        (Modifier::DIM, " opacity=\"0.6\""),
    ];
    let looks = looks.into_iter().filter(|(modifier, _)| has(*modifier));
    looks.map(|(_, look)| look).collect()
}

/// A colour as HTML writes it; `None` for the terminal's own.
fn code(colour: Color) -> Option<String> {
    match colour {
        Color::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        Color::Indexed(index @ 0..16) => Some(NAMED[usize::from(index)].to_owned()),
        Color::Indexed(index @ 16..232) => {
            let level = |n: u8| if n == 0 { 0 } else { 55 + 40 * n };
            let (red, green, blue) = ((index - 16) / 36, (index - 16) / 6 % 6, (index - 16) % 6);
            code(Color::Rgb(level(red), level(green), level(blue)))
        }
        Color::Indexed(index) => {
            let grey = 8 + 10 * (index - 232);
            code(Color::Rgb(grey, grey, grey))
        }
        Color::Reset => None,
        named => {
            let index = ORDER.iter().position(|colour| *colour == named)?;
            Some(NAMED[index].to_owned())
        }
    }
}

/// The text in the place of text or of an attribute.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => shown.push_str("&lt;"),
            '>' => shown.push_str("&gt;"),
            '&' => shown.push_str("&amp;"),
            '"' => shown.push_str("&quot;"),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_becomes_text_with_its_colours() {
        let lines = [
            "\u{1b}[1;31mred\u{1b}[0m plain".to_owned(),
            "\u{1b}[7m> 1\u{1b}[0m".to_owned(),
        ];
        insta::assert_snapshot!(picture(&lines, 12, 2));
    }

    #[test]
    fn what_a_program_wrote_stays_text() {
        let line = "</text><script>alert(1)</script>\u{1b}]8;;javascript:x\u{7}link\u{1b}]8;;\u{7}\u{202e}".to_owned();
        let svg = picture(&[line], 80, 1);
        assert!(
            !svg.contains("<script") && !svg.contains("javascript"),
            "{svg}"
        );
        assert!(
            svg.contains("&lt;script&gt;") && svg.contains(r"\u{202e}"),
            "{svg}"
        );
        let elements = svg.matches('<').count();
        assert_eq!(elements, svg.matches('>').count(), "{svg}");
        assert_eq!(elements, 9, "{svg}");
    }

    #[test]
    fn a_page_of_a_screen_has_nothing_active_in_it() {
        let picture = picture(&["<img src=x>".to_owned()], 20, 1);
        let page = page("coder</title><script>", &picture);
        assert!(page.contains("default-src 'none'"), "{page}");
        assert!(page.contains("&lt;img src=x&gt;"), "{page}");
        for active in [
            "<script",
            "<img",
            " style=",
            " href=",
            "<link",
            "</title></title",
        ] {
            assert!(!page.contains(active), "{active}: {page}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out() {
        let svg = picture(&["x".repeat(30), "second".to_owned()], 10, 1);
        assert!(!svg.contains("xxx") && !svg.contains("second"), "{svg}");
    }

    #[test]
    fn the_palette_has_its_usual_colours() {
        let code = |index| super::code(Color::Indexed(index)).unwrap();
        assert_eq!(
            [code(16), code(231), code(196), code(244)],
            ["#000000", "#ffffff", "#ff0000", "#808080"]
        );
    }
}
