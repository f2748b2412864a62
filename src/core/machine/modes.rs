//! The permission mode, from the two sources that show it: the footer of the screen and the hooks. A mode that is not configured
//! is reported at once.

use super::*;

/// The trouble name for a program that runs in another mode than it was started in.
const MODE: &str = "mode";

/// The modes that were seen last.
#[derive(Debug, Default)]
pub(super) struct Modes {
    footer: Option<String>,
    hook: Option<String>,
    /// The mode that was reported.
    told: Option<String>,
}

impl Modes {
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [&self.footer, &self.hook]
            .into_iter()
            .filter_map(|mode| mode.as_deref())
    }

    /// A seen mode that is not the configured one; otherwise the visible one.
    fn telling(&self, wanted: &str) -> Option<&str> {
        let strange = self.all().find(|mode| !same_mode(mode, wanted));
        strange.or_else(|| self.all().next())
    }
}

impl Machine {
    /// The mode in which it runs. If the sources differ, the one that is not configured.
    pub fn mode(&self) -> Option<&str> {
        let modes = &self.up()?.modes;
        modes.telling(&self.running().mode)
    }

    pub(super) fn saw_mode(&mut self) {
        let Some(up) = self.up_mut() else { return };
        let seen = up.sight.as_ref().and_then(|sight| sight.mode.clone());
        // A dialog hides the footer; the mode is unchanged.
        if seen.is_some() && seen != up.modes.footer {
            up.modes.footer = seen;
            // The hook's earlier report is out of date.
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
            None => return self.tell(EventKind::Mode { mode: wanted }),
        };
        self.tell(EventKind::Trouble {
            cause: MODE.to_owned(),
            text,
        });
    }
}

/// Older versions call `manual` `default`, and hooks still do.
pub(super) fn same_mode(seen: &str, wanted: &str) -> bool {
    let newest = |mode: &str| match mode.to_lowercase().as_str() {
        "default" => "manual".to_owned(),
        other => other.to_owned(),
    };
    newest(seen) == newest(wanted)
}
