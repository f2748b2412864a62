//! Paired devices: tokens that outlive the server. The file has their names, scopes and times, and SHA-256 digests
//! instead of the codes and the tokens. `missiond web pair` writes it, and so does the server that takes a code; both
//! hold a lock meanwhile.

use super::access::WebSecret;
use crate::control::scope::Scope;
use crate::core::text::hex;
use crate::os::{files, paths};
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The name of the file in the state directory.
const FILE: &str = "web-devices.json";
/// How long the code of a new device is valid: longer than that of a tab, since it has to be typed or scanned.
pub const PAIRING: TimeDelta = TimeDelta::minutes(10);
/// The maximum of devices.
const MAX_DEVICES: usize = 32;
/// The maximum bytes of a name.
const MAX_NAME: usize = 32;
/// The minimum time between two updates of a device's last use.
const USED_PAUSE: TimeDelta = TimeDelta::hours(1);

/// A device, as the file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub name: String,
    pub scope: Scope,
    pub made: DateTime<Utc>,
    /// The time at which it expires.
    pub until: DateTime<Utc>,
    pub last_used: Option<DateTime<Utc>>,
    /// The digest of its code, until it has a token.
    code: Option<String>,
    token: Option<String>,
}

impl Device {
    /// Tells whether it has exchanged its code for a token.
    pub fn is_paired(&self) -> bool {
        self.token.is_some()
    }

    fn lives(&self, now: DateTime<Utc>) -> bool {
        now < self.until && (self.is_paired() || now < self.made + PAIRING)
    }
}

/// The device and the scope of a token or code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceGrant {
    pub name: String,
    pub scope: Scope,
}

/// The devices of this user.
#[derive(Debug, Clone)]
pub struct Devices {
    file: PathBuf,
}

fn sum(secret: &str) -> String {
    hex::encode(&Sha256::digest(secret.as_bytes()))
}

impl Devices {
    /// The devices in the file of this directory.
    pub fn in_dir(state: &Path) -> Devices {
        Devices {
            file: state.join(FILE),
        }
    }

    /// All devices that have not expired.
    pub fn all(&self, now: DateTime<Utc>) -> io::Result<Vec<Device>> {
        let mut devices = self.load()?;
        devices.retain(|device| device.lives(now));
        Ok(devices)
    }

    /// Adds a device, and returns the code with which it gets its token.
    pub fn pair(
        &self,
        name: &str,
        scope: Scope,
        life: TimeDelta,
        now: DateTime<Utc>,
    ) -> io::Result<WebSecret> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
            let text = format!(
                "`{name}` can't be a name: letters, digits, `.`, `_`, `-`, {MAX_NAME} at most"
            );
            return Err(io::Error::other(text));
        }
        let code = WebSecret::new::<16>()?;
        self.change(now, |devices| {
            if devices.iter().any(|device| device.name == name) {
                return Err(io::Error::other(format!("{name} is paired already")));
            }
            if devices.len() >= MAX_DEVICES {
                return Err(io::Error::other(format!("there are {MAX_DEVICES} devices")));
            }
            devices.push(Device {
                name: name.to_owned(),
                scope,
                made: now,
                until: now + life,
                last_used: None,
                code: Some(sum(code.text())),
                token: None,
            });
            Ok(())
        })?;
        Ok(code)
    }

    /// Exchanges the code of a device for its token; a code works once.
    pub fn redeem(
        &self,
        code: &str,
        now: DateTime<Utc>,
    ) -> io::Result<Option<(WebSecret, DeviceGrant)>> {
        let sum_of_code = Some(sum(code));
        if !self.load()?.iter().any(|device| device.code == sum_of_code) {
            return Ok(None);
        }
        let token = WebSecret::new::<32>()?;
        let grant = self.change(now, |devices| {
            let mut found = devices.iter_mut();
            let Some(device) = found.find(|device| device.code == sum_of_code) else {
                return Ok(None);
            };
            device.code = None;
            device.token = Some(sum(token.text()));
            Ok(Some(DeviceGrant {
                name: device.name.clone(),
                scope: device.scope,
            }))
        })?;
        Ok(grant.map(|grant| (token, grant)))
    }

    /// The grant of a device's token. An expired device is removed, so that a clock that is set back does not revive
    /// it.
    pub fn grant(&self, token: &str, now: DateTime<Utc>) -> io::Result<Option<DeviceGrant>> {
        let wanted = Some(sum(token));
        let devices = self.load()?;
        let Some(device) = devices.iter().find(|device| device.token == wanted) else {
            return Ok(None);
        };
        let is_new_use = device.last_used.is_none_or(|last| now - last >= USED_PAUSE);
        if is_new_use || !device.lives(now) {
            self.change(now, |devices| {
                let mut same = devices.iter_mut();
                if let Some(device) = same.find(|device| device.token == wanted) {
                    device.last_used = Some(now);
                }
                Ok(())
            })?;
        }
        Ok(device.lives(now).then(|| DeviceGrant {
            name: device.name.clone(),
            scope: device.scope,
        }))
    }

    /// Removes a device. Returns whether there was one with this name.
    pub fn revoke(&self, name: &str, now: DateTime<Utc>) -> io::Result<bool> {
        self.change(now, |devices| {
            let before = devices.len();
            devices.retain(|device| device.name != name);
            Ok(devices.len() < before)
        })
    }

    fn load(&self) -> io::Result<Vec<Device>> {
        let text = match files::read_text(&self.file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            text => text?,
        };
        let unreadable = |error| {
            let file = self.file.display();
            io::Error::other(format!("{file} can't be read: {error}"))
        };
        serde_json::from_str(&text).map_err(unreadable)
    }

    /// Changes the file under its lock, and drops expired devices.
    fn change<T>(
        &self,
        now: DateTime<Utc>,
        change: impl FnOnce(&mut Vec<Device>) -> io::Result<T>,
    ) -> io::Result<T> {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        paths::ensure_private_dir(directory).map_err(io::Error::other)?;
        let lock = files::append(&self.file.with_extension("lock"))?;
        File::lock(&lock)?;
        let mut devices = self.load()?;
        devices.retain(|device| device.lives(now));
        let done = change(&mut devices)?;
        let text = serde_json::to_string_pretty(&devices).map_err(io::Error::other)?;
        files::save(&self.file, &text)?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: TimeDelta = TimeDelta::days(30);

    fn devices() -> (tempfile::TempDir, Devices, DateTime<Utc>) {
        let dir = tempfile::tempdir().unwrap();
        let devices = Devices::in_dir(&dir.path().join("state"));
        (dir, devices, Utc::now())
    }

    #[test]
    fn a_code_gives_one_token_which_lives_until_it_is_revoked() {
        let (_dir, devices, now) = devices();
        let code = devices.pair("phone", Scope::Answer, LIFE, now).unwrap();
        assert!(devices.pair("phone", Scope::Keys, LIFE, now).is_err());
        assert!(devices.pair("../phone", Scope::View, LIFE, now).is_err());
        assert_eq!(
            devices.grant(code.text(), now).unwrap(),
            None,
            "a code is no token"
        );
        let (token, grant) = devices.redeem(code.text(), now).unwrap().unwrap();
        assert_eq!((grant.name.as_str(), grant.scope), ("phone", Scope::Answer));
        assert!(devices.redeem(code.text(), now).unwrap().is_none(), "twice");
        assert_eq!(devices.grant(token.text(), now).unwrap(), Some(grant));
        let text = std::fs::read_to_string(&devices.file).unwrap();
        assert!(!text.contains(token.text()) && !text.contains(code.text()));
        assert!(devices.revoke("phone", now).unwrap());
        assert!(!devices.revoke("phone", now).unwrap());
        assert_eq!(devices.grant(token.text(), now).unwrap(), None);
    }

    #[test]
    fn what_has_expired_stays_so_whatever_the_clock_says_then() {
        let (_dir, devices, now) = devices();
        let code = devices.pair("late", Scope::View, LIFE, now).unwrap();
        let late = now + PAIRING;
        assert!(devices.redeem(code.text(), late).unwrap().is_none());
        assert!(
            devices.redeem(code.text(), now).unwrap().is_none(),
            "set back"
        );
        let code = devices.pair("old", Scope::View, LIFE, now).unwrap();
        let (token, _) = devices.redeem(code.text(), now).unwrap().unwrap();
        assert_eq!(devices.grant(token.text(), now + LIFE).unwrap(), None);
        assert_eq!(devices.grant(token.text(), now).unwrap(), None, "set back");
        assert_eq!(devices.all(now).unwrap(), []);
    }
}
