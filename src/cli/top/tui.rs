//! The person's terminal: taken for the dashboard, and given back as it was however that ends.

use crate::cli::failure::Failure;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{IsTerminal, Stdout, stdin, stdout};
use std::sync::Once;

pub type Screen = Terminal<CrosstermBackend<Stdout>>;

/// Standard input and output have to be a terminal.
pub fn check() -> Result<(), Failure> {
    let dumb = std::env::var("TERM").is_ok_and(|name| name == "dumb");
    if stdin().is_terminal() && stdout().is_terminal() && !dumb {
        return Ok(());
    }
    Err(Failure::usage(
        "the dashboard needs a terminal that can draw: standard input or output is none, or TERM is dumb",
    )
    .next("in a script: missiond status --json, missiond pending --json, missiond events -f"))
}

/// The terminal while it shows the dashboard.
pub struct Tui {
    pub screen: Screen,
}

impl Tui {
    pub fn enter() -> Result<Tui, Failure> {
        restore_at_panic();
        let failed = |error| Failure::failed(format!("the terminal cannot be set up: {error}"));
        let screen = Terminal::new(CrosstermBackend::new(stdout())).map_err(failed)?;
        let mut tui = Tui { screen };
        tui.take().map_err(failed)?;
        Ok(tui)
    }

    fn take(&mut self) -> std::io::Result<()> {
        enable_raw_mode()?;
        execute!(
            stdout(),
            EnterAlternateScreen,
            Clear(ClearType::All),
            EnableBracketedPaste,
            cursor::Hide
        )?;
        // A new one draws every cell; clearing the old one would ask the terminal where its cursor is.
        self.screen = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(())
    }

    /// Takes the terminal once more: a shell that had it meanwhile has set its own mode.
    pub fn take_again(&mut self) -> Result<(), Failure> {
        let failed = |error| Failure::failed(format!("the terminal cannot be taken back: {error}"));
        disable_raw_mode()
            .and_then(|()| self.take())
            .map_err(failed)
    }

    /// Stops this program; whoever continues it sends the signal for it.
    pub fn suspend(&mut self) {
        give_back();
        // A process that can't stop itself goes on, and gets no signal either.
        let this = rustix::process::getpid();
        if rustix::process::kill_process(this, rustix::process::Signal::STOP).is_err() {
            let _ = self.take();
        }
    }

    /// Gives the terminal to `work`, and takes it back.
    pub async fn lend<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        give_back();
        let result = work.await;
        let failed = |error| Failure::failed(format!("the terminal cannot be taken back: {error}"));
        self.take().map_err(failed)?;
        Ok(result)
    }
}

impl Drop for Tui {
    fn drop(&mut self) {
        give_back();
    }
}

/// If the terminal itself is gone, nothing of this matters.
fn give_back() {
    let _ = execute!(
        stdout(),
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}

/// The text of a panic is to be read on the terminal as it was before.
fn restore_at_panic() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            told(panic);
        }));
    });
}
