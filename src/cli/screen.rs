use crate::cli::context::Context;
use crate::cli::failure::Failure;
use crate::cli::{complete, sanitise, svg};
use crate::control::requests::Screen as Request;
use crate::core::model::ScreenParams;

/// Shows a slot's screen as it is now.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  missiond screen coder
  missiond screen coder -n 200          the last 200 lines, those that scrolled away too
  missiond screen coder --ansi | less -R
  missiond screen coder --svg > coder.svg
  missiond screen coder --html > coder.html")]
pub struct ScreenArgs {
    /// The slot
    #[arg(add = complete::slots())]
    slot: String,
    /// The last N lines, with those that scrolled away
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<usize>,
    /// With colours, also into a pipe
    #[arg(long)]
    ansi: bool,
    /// As a picture: one SVG file, which any browser shows
    #[arg(long, conflicts_with_all = ["ansi", "lines", "html"])]
    svg: bool,
    /// As a page: one HTML file, which fetches nothing and has no scripts
    #[arg(long, conflicts_with_all = ["ansi", "lines"])]
    html: bool,
}

impl ScreenArgs {
    pub async fn run(self, context: &Context) -> Result<(), Failure> {
        let ansi = self.ansi || self.svg || self.html;
        let params = ScreenParams {
            slot: self.slot,
            lines: self.lines,
            ansi,
        };
        let screen = context.ask::<Request>(params).await?;
        if context.out.json {
            return context.out.json(&screen);
        }
        if self.svg || self.html {
            let picture = svg::picture(&screen.lines, screen.cols, screen.rows);
            let shown = match self.html {
                true => svg::page(&screen.slot, &picture),
                false => picture,
            };
            return context.out.raw(shown.as_bytes());
        }
        let lines = screen.lines.iter().map(|line| {
            if ansi {
                // A colour ends with its line, whatever the program had in mind.
                format!("{}\u{1b}[0m\n", sanitise::keep_colours(line))
            } else {
                format!("{}\n", sanitise::text(line))
            }
        });
        context.out.raw(lines.collect::<String>().as_bytes())
    }
}
