//! Codes and tokens. A code is shown once, in a terminal outside of the slots, and gives one token; a token is what each
//! request carries. Only their digests are kept. Pure, but for the kernel's random numbers.

use crate::control::scope::Scope;
use crate::core::text::hex;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// A code is good for this long.
pub const CODE_LIFE: Duration = Duration::from_secs(60);
/// A token that is not used for this long is forgotten.
pub const TOKEN_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// Codes and tokens that are kept; the oldest makes place for a new one.
const MOST: usize = 64;

/// Wrong codes and tokens within [`STRIKE_WINDOW`] that are answered at once; after them each one waits for [`PENALTY`].
const FREE_STRIKES: usize = 10;
const STRIKE_WINDOW: Duration = Duration::from_secs(60);
pub const PENALTY: Duration = Duration::from_secs(1);

type Sum = [u8; 32];

/// A secret as its owner has it. It has no `Debug` form, so that it gets into no log.
pub struct Secret(String);

impl Secret {
    fn new(bytes: usize) -> io::Result<Secret> {
        let mut random = vec![0; bytes];
        let mut filled = 0;
        while filled < bytes {
            let flags = rustix::rand::GetRandomFlags::empty();
            filled += rustix::rand::getrandom(&mut random[filled..], flags)?;
        }
        Ok(Secret(hex::encode(&random)))
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

fn sum(secret: &str) -> Sum {
    Sha256::digest(secret.as_bytes()).into()
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    scope: Scope,
    /// When it was made or used last.
    at: Instant,
}

/// What is allowed to whom. Digests are looked up, not compared with the secret: how long that takes tells nothing about
/// the secret.
#[derive(Debug, Default)]
pub struct Access {
    codes: HashMap<Sum, Grant>,
    tokens: HashMap<Sum, Grant>,
    /// When wrong ones came.
    strikes: Vec<Instant>,
}

impl Access {
    /// A code for one token of this scope.
    pub fn mint(&mut self, scope: Scope, now: Instant) -> io::Result<Secret> {
        let code = Secret::new(16)?;
        keep(&mut self.codes, code.text(), scope, now, CODE_LIFE);
        Ok(code)
    }

    /// The token for a code, which is used up by this.
    pub fn redeem(&mut self, code: &str, now: Instant) -> io::Result<Option<(Secret, Scope)>> {
        let grant = self.codes.remove(&sum(code));
        let Some(grant) = grant.filter(|grant| is_good(grant, now, CODE_LIFE)) else {
            return Ok(None);
        };
        let token = Secret::new(32)?;
        keep(&mut self.tokens, token.text(), grant.scope, now, TOKEN_LIFE);
        Ok(Some((token, grant.scope)))
    }

    /// What this token allows.
    pub fn scope(&mut self, token: &str, now: Instant) -> Option<Scope> {
        let grant = self.tokens.get_mut(&sum(token))?;
        if !is_good(grant, now, TOKEN_LIFE) {
            return None;
        }
        grant.at = now;
        Some(grant.scope)
    }

    /// A wrong code or token came. Returns how long its answer waits.
    pub fn strike(&mut self, now: Instant) -> Option<Duration> {
        let is_recent = |at: &Instant| now.duration_since(*at) < STRIKE_WINDOW;
        self.strikes.retain(is_recent);
        if self.strikes.len() >= FREE_STRIKES {
            return Some(PENALTY);
        }
        self.strikes.push(now);
        None
    }
}

fn is_good(grant: &Grant, now: Instant, life: Duration) -> bool {
    now.duration_since(grant.at) <= life
}

fn keep(
    grants: &mut HashMap<Sum, Grant>,
    secret: &str,
    scope: Scope,
    now: Instant,
    life: Duration,
) {
    grants.retain(|_, grant| is_good(grant, now, life));
    if grants.len() >= MOST {
        let oldest = grants.iter().min_by_key(|(_, grant)| grant.at);
        let oldest = oldest.map(|(sum, _)| *sum);
        oldest.and_then(|sum| grants.remove(&sum));
    }
    grants.insert(sum(secret), Grant { scope, at: now });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_gives_one_token_within_a_minute() {
        let (mut access, begin) = (Access::default(), Instant::now());
        let code = access.mint(Scope::Answer, begin).unwrap();
        let late = begin + CODE_LIFE;
        let (token, scope) = access.redeem(code.text(), late).unwrap().unwrap();
        assert_eq!(scope, Scope::Answer);
        assert_eq!(access.scope(token.text(), late), Some(Scope::Answer));
        assert!(access.redeem(code.text(), late).unwrap().is_none(), "twice");

        let code = access.mint(Scope::Keys, begin).unwrap();
        let too_late = begin + CODE_LIFE + Duration::from_secs(1);
        assert!(access.redeem(code.text(), too_late).unwrap().is_none());
        assert!(access.redeem("0123456789abcdef", begin).unwrap().is_none());
        // A code is no token, and a token no code.
        let code = access.mint(Scope::Keys, begin).unwrap();
        assert_eq!(access.scope(code.text(), begin), None);
        assert!(access.redeem(token.text(), begin).unwrap().is_none());
    }

    #[test]
    fn a_token_that_is_used_lives_on() {
        let (mut access, mut now) = (Access::default(), Instant::now());
        let code = access.mint(Scope::View, now).unwrap();
        let (token, _) = access.redeem(code.text(), now).unwrap().unwrap();
        for _ in 0..3 {
            now += TOKEN_LIFE;
            assert_eq!(access.scope(token.text(), now), Some(Scope::View));
        }
        now += TOKEN_LIFE + Duration::from_secs(1);
        assert_eq!(access.scope(token.text(), now), None);
    }

    #[test]
    fn secrets_differ_and_the_oldest_make_place() {
        let (mut access, begin) = (Access::default(), Instant::now());
        let codes: Vec<Secret> = (0..MOST + 1)
            .map(|at| {
                let now = begin + Duration::from_millis(at as u64);
                access.mint(Scope::View, now).unwrap()
            })
            .collect();
        assert_eq!(access.codes.len(), MOST);
        let now = begin + Duration::from_secs(1);
        assert!(access.redeem(codes[0].text(), now).unwrap().is_none());
        assert!(access.redeem(codes[1].text(), now).unwrap().is_some());
    }

    #[test]
    fn guesses_are_slowed_down() {
        let (mut access, now) = (Access::default(), Instant::now());
        for _ in 0..FREE_STRIKES {
            assert_eq!(access.strike(now), None);
        }
        assert_eq!(access.strike(now), Some(PENALTY));
        assert_eq!(access.strike(now + STRIKE_WINDOW), None);
    }
}
