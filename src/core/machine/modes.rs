//! The permission mode, by those who can tell: the footer of the screen and the hooks. One that nobody configured
//! is reported at once.

use super::*;

/// The trouble of a program that runs in another mode than it was started in.
const MODE: &str = "mode";

/// What was seen last.
#[derive(Debug, Default)]
pub(super) struct Modes {
    footer: Option<String>,
    hook: Option<String>,
    /// The one that was reported.
    told: Option<String>,
}

impl Modes {
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [&self.footer, &self.hook]
            .into_iter()
            .filter_map(|mode| mode.as_deref())
    }

    /// Of those that were seen, one that was not wanted; else the one that is shown.
    fn telling(&self, wanted: &str) -> Option<&str> {
        let strange = self.all().find(|mode| !same_mode(mode, wanted));
        strange.or_else(|| self.all().next())
    }
}

impl Machine {
    /// The mode it runs in. Where its witnesses differ, the one that was not configured.
    pub fn mode(&self) -> Option<&str> {
        let modes = &self.up()?.modes;
        modes.telling(&self.running().mode)
    }

    pub(super) fn saw_mode(&mut self) {
        let Some(up) = self.up_mut() else { return };
        let seen = up.sight.as_ref().and_then(|sight| sight.mode.clone());
        // A dialog hides the footer; the mode stays what it was.
        if seen.is_some() && seen != up.modes.footer {
            up.modes.footer = seen;
            // What a hook said before is out of date.
            up.modes.hook = None;
            self.check_mode();
        }
    }

    pub(super) fn heard_mode(&mut self, mode: Option<&str>) {
        let (Some(up), Some(mode)) = (self.up_mut(), mode) else {
            return;
        };
        up.modes.hook = Some(mode.to_owned());
        self.check_mode();
    }

    fn check_mode(&mut self) {
        let wanted = self.running().mode.clone();
        let Some(up) = self.up_mut() else { return };
        let strange = up
            .modes
            .telling(&wanted)
            .filter(|mode| !same_mode(mode, &wanted));
        let strange = strange.map(str::to_owned);
        if up.modes.told == strange {
            return;
        }
        up.modes.told = strange.clone();
        let text = match strange {
            Some(mode) => format!("permission mode is {mode}, not {wanted}"),
            None => return self.tell(What::Mode { mode: wanted }),
        };
        self.tell(What::Trouble {
            cause: MODE.to_owned(),
            text,
        });
    }
}

/// `manual` was called `default` in older versions, and still is in what hooks say.
pub(super) fn same_mode(seen: &str, wanted: &str) -> bool {
    let newest = |mode: &str| match mode.to_lowercase().as_str() {
        "default" => "manual".to_owned(),
        other => other.to_owned(),
    };
    newest(seen) == newest(wanted)
}
