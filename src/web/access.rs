//! Codes and tokens. A code is shown once, in a terminal outside the slots, and gives one token; each request carries a
//! token. Only their digests are kept. Pure, except for the kernel's random numbers.

use crate::control::scope::Scope;
use crate::core::text::hex;
use crate::os::random;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

/// How long a code is valid.
pub const CODE_LIFE: Duration = Duration::from_secs(60);
/// How long a ticket is valid.
pub const TICKET_LIFE: Duration = Duration::from_secs(30);
/// A token that is not used for this long expires.
pub const TOKEN_LIFE: Duration = Duration::from_secs(24 * 60 * 60);
/// The maximum of codes and tokens; a new one replaces the oldest.
const MOST: usize = 64;

/// The number of wrong codes and tokens within [`STRIKE_WINDOW`] that are answered at once; after that, each answer is
/// delayed by [`PENALTY`].
const FREE_STRIKES: usize = 10;
const STRIKE_WINDOW: Duration = Duration::from_secs(60);
pub const PENALTY: Duration = Duration::from_secs(1);

type Sum = [u8; 32];

/// A secret in plain text. It has no `Debug` form, so that it never appears in a log.
pub struct WebSecret(String);

impl WebSecret {
    pub fn new<const BYTES: usize>() -> io::Result<WebSecret> {
        let random = random::bytes::<BYTES>()?;
        Ok(WebSecret(hex::encode(&random)))
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
    /// The time at which it was created or last used.
    at: Instant,
}

/// The valid codes and tokens. They are looked up by digest, not compared with the secret, so the time reveals nothing
/// about the secret.
#[derive(Debug, Default)]
pub struct Access {
    codes: HashMap<Sum, Grant>,
    tokens: HashMap<Sum, Grant>,
    /// The times of wrong codes and tokens.
    strikes: Vec<Instant>,
}

impl Access {
    /// A code for one token of this scope.
    pub fn mint(&mut self, scope: Scope, now: Instant) -> io::Result<WebSecret> {
        let code = WebSecret::new::<16>()?;
        keep(&mut self.codes, code.text(), scope, now, CODE_LIFE);
        Ok(code)
    }

    /// Exchanges a code for a token; a code works once.
    pub fn redeem(&mut self, code: &str, now: Instant) -> io::Result<Option<(WebSecret, Scope)>> {
        let grant = self.codes.remove(&sum(code));
        let Some(grant) = grant.filter(|grant| is_good(grant, now, CODE_LIFE)) else {
            return Ok(None);
        };
        let token = WebSecret::new::<32>()?;
        keep(&mut self.tokens, token.text(), grant.scope, now, TOKEN_LIFE);
        Ok(Some((token, grant.scope)))
    }

    /// The scope of this token, if it is valid.
    pub fn scope(&mut self, token: &str, now: Instant) -> Option<Scope> {
        let grant = self.tokens.get_mut(&sum(token))?;
        if !is_good(grant, now, TOKEN_LIFE) {
            return None;
        }
        grant.at = now;
        Some(grant.scope)
    }

    /// Counts a wrong code or token. Returns the delay of its answer.
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

/// The valid tickets, each with its subject. They are looked up by digest, like codes and tokens.
pub struct Tickets<T>(HashMap<Sum, (T, Instant)>);

impl<T> Default for Tickets<T> {
    fn default() -> Tickets<T> {
        Tickets(HashMap::new())
    }
}

impl<T> Tickets<T> {
    pub fn mint(&mut self, of: T, now: Instant) -> io::Result<WebSecret> {
        let lives = |at: &Instant| now.duration_since(*at) <= TICKET_LIFE;
        self.0.retain(|_, (_, at)| lives(at));
        if self.0.len() >= MOST {
            return Err(io::Error::other("there are too many tickets"));
        }
        let ticket = WebSecret::new::<16>()?;
        self.0.insert(sum(ticket.text()), (of, now));
        Ok(ticket)
    }

    /// The subject of a ticket; it works once.
    pub fn redeem(&mut self, ticket: &str, now: Instant) -> Option<T> {
        let (of, at) = self.0.remove(&sum(ticket))?;
        (now.duration_since(at) <= TICKET_LIFE).then_some(of)
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
        // A code is not a token, and a token is not a code.
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
        let codes: Vec<WebSecret> = (0..MOST + 1)
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
    fn a_ticket_is_good_once_and_for_half_a_minute() {
        let (mut tickets, now) = (Tickets::default(), Instant::now());
        let [one, late] = [1, 2].map(|of| tickets.mint(of, now).unwrap());
        assert_eq!(tickets.redeem(one.text(), now + TICKET_LIFE), Some(1));
        assert_eq!(tickets.redeem(one.text(), now), None, "twice");
        let too_late = now + TICKET_LIFE + Duration::from_secs(1);
        assert_eq!(tickets.redeem(late.text(), too_late), None);
        assert_eq!(tickets.redeem("0123456789abcdef", now), None);
        for _ in 0..MOST {
            tickets.mint(3, now).unwrap();
        }
        assert!(tickets.mint(4, now).is_err());
        assert!(tickets.mint(4, too_late).is_ok());
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
