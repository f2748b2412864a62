//! One-time codes, by which a person who is elsewhere answers a dialog: a code is good for one answer to one dialog as it was
//! shown, once, for a limited time. Whoever has no code can do nothing. Pure.

use super::Alert;
use crate::core::text::hex;
use crate::core::text::hidden::Hidden;
use chrono::{DateTime, TimeDelta, Utc};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// How long a code is good: as long as ntfy keeps a message.
const LIFE: TimeDelta = TimeDelta::hours(12);
/// The codes that are known, good or not; the oldest go first. Two for each ask.
const MOST: usize = 512;
/// 80 bits of the sum.
const LENGTH: usize = 10;
/// Wrong codes raise one alarm in this time, with their number: a stranger can't fill the audit.
const ONE_ALARM: TimeDelta = TimeDelta::minutes(1);

type Sum = [u8; 32];

/// An answer that can be given from elsewhere. There is no `always`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteWord {
    Yes,
    No,
}

impl RemoteWord {
    /// The word that `confirm` takes.
    pub fn word(self) -> &'static str {
        match self {
            RemoteWord::Yes => "yes",
            RemoteWord::No => "no",
        }
    }
}

/// What a code is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeMeaning {
    /// The id of the alert.
    pub alert: String,
    pub slot: String,
    pub dialog: String,
    pub answer: RemoteWord,
    /// The request as it was shown.
    shown: Sum,
}

impl CodeMeaning {
    /// Whether the alert, as it is now, asks just what the person saw.
    pub fn is_as_shown(&self, now: &Alert) -> bool {
        let request = now.request.as_ref();
        request.is_some_and(|request| request.whole && sum_of(&request.text) == self.shown)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CodeState {
    Good,
    Used,
    /// The ask was over before; how it ended, in words.
    Over(String),
    /// That was told to whoever came with the code.
    Told,
}

#[derive(Debug)]
struct Code {
    meaning: CodeMeaning,
    expires: DateTime<Utc>,
    state: CodeState,
}

/// What a code that came in leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Redeemed {
    Answer(CodeMeaning),
    /// Too late: how the ask ended, in words.
    Late {
        slot: String,
        story: String,
    },
    /// Too late, and that was said before.
    Nothing,
    Wrong(&'static str),
}

/// The codes of one daemon. Their digests are kept, and a code is looked up by its digest, so that the time of the look-up
/// reveals nothing.
#[derive(Debug)]
pub struct AnswerCodes {
    key: Hidden,
    codes: HashMap<Sum, Code>,
    /// Wrong codes since the last alarm, and when that was.
    wrong: u32,
    alarm: Option<DateTime<Utc>>,
}

impl AnswerCodes {
    /// With a key that nobody else knows.
    pub fn new(key: [u8; 32]) -> AnswerCodes {
        AnswerCodes {
            key: Hidden::new(hex::encode(&key)),
            codes: HashMap::new(),
            wrong: 0,
            alarm: None,
        }
    }

    /// A code for this answer to this ask; `None` if it asks nothing that can be answered.
    pub fn issue(
        &mut self,
        alert: &Alert,
        answer: RemoteWord,
        now: DateTime<Utc>,
    ) -> Option<Hidden> {
        let request = alert.request.as_ref()?;
        let expires = now + LIFE;
        let shown = sum_of(&request.text);
        let parts = [
            alert.id.as_str(),
            &alert.slot,
            &request.dialog,
            &hex::encode(&shown),
            answer.word(),
            &expires.timestamp().to_string(),
        ];
        let code = hex::encode(&mac(self.key.reveal().as_bytes(), &parts.join("\0"))[..LENGTH]);
        self.make_room(now);
        let meaning = CodeMeaning {
            alert: alert.id.clone(),
            slot: alert.slot.clone(),
            dialog: request.dialog.clone(),
            answer,
            shown,
        };
        let issued = Code {
            meaning,
            expires,
            state: CodeState::Good,
        };
        self.codes.insert(sum_of(&code), issued);
        Some(Hidden::new(code))
    }

    fn make_room(&mut self, now: DateTime<Utc>) {
        self.codes.retain(|_, code| code.expires > now);
        if self.codes.len() < MOST {
            return;
        }
        let oldest = self.codes.iter().min_by_key(|(_, code)| code.expires);
        if let Some(sum) = oldest.map(|(sum, _)| *sum) {
            self.codes.remove(&sum);
        }
    }

    /// Uses a code up, with the other one of the same ask.
    pub fn redeem(&mut self, text: &str, now: DateTime<Utc>) -> Redeemed {
        let Some(code) = self.codes.get_mut(&sum_of(text.trim())) else {
            return Redeemed::Wrong("a code that nobody was given");
        };
        let story = match &code.state {
            CodeState::Used => return Redeemed::Wrong("a code that was used before"),
            CodeState::Told => return Redeemed::Nothing,
            CodeState::Over(story) => Some(story.clone()),
            CodeState::Good if code.expires <= now => Some("its time is over".to_owned()),
            CodeState::Good => None,
        };
        if let Some(story) = story {
            code.state = CodeState::Told;
            let slot = code.meaning.slot.clone();
            return Redeemed::Late { slot, story };
        }
        code.state = CodeState::Used;
        let meaning = code.meaning.clone();
        let story = format!("the other button said {}", meaning.answer.word());
        self.over(&meaning.alert, &story);
        Redeemed::Answer(meaning)
    }

    /// An ask is over: its codes answer nothing any more.
    pub fn over(&mut self, alert: &str, story: &str) {
        let of_alert = |code: &&mut Code| code.meaning.alert == alert;
        for code in self.codes.values_mut().filter(of_alert) {
            if code.state == CodeState::Good {
                code.state = CodeState::Over(story.to_owned());
            }
        }
    }

    /// Counts a wrong code. The words of the alarm, if one is to be raised now.
    pub fn wrong(&mut self, why: &str, now: DateTime<Utc>) -> Option<String> {
        self.wrong = self.wrong.saturating_add(1);
        if self.alarm.is_some_and(|last| now - last < ONE_ALARM) {
            return None;
        }
        self.alarm = Some(now);
        let others = match std::mem::take(&mut self.wrong) {
            1 => String::new(),
            count => format!(", the last of {count} wrong ones since the last alarm"),
        };
        Some(format!(
            "{why} came by the reply topic of ntfy{others}: nothing was pressed"
        ))
    }
}

fn sum_of(text: &str) -> Sum {
    Sha256::digest(text.as_bytes()).into()
}

/// HMAC with SHA-256, as RFC 2104 has it. The key is not longer than a block of 64 bytes.
fn mac(key: &[u8], text: &str) -> Sum {
    let padded = |with: u8| {
        let mut block = [with; 64];
        for (byte, key) in block.iter_mut().zip(key) {
            *byte ^= key;
        }
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(text);
    let outer = Sha256::new().chain_update(padded(0x5c));
    outer.chain_update(inner.finalize()).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::super::tests::permission;
    use super::*;

    fn alert(slot: &str, command: &str) -> Alert {
        Alert::of_dialog(slot, &permission(command))
    }

    fn codes() -> (AnswerCodes, DateTime<Utc>) {
        (AnswerCodes::new([7; 32]), DateTime::UNIX_EPOCH)
    }

    /// The second test case of RFC 4231.
    #[test]
    fn the_sum_is_that_of_the_standard() {
        let sum = mac(b"Jefe", "what do ya want for nothing?");
        assert_eq!(
            hex::encode(&sum),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn a_code_is_good_once_for_one_answer_to_one_ask() {
        let (mut codes, now) = codes();
        let (ask, other) = (alert("a", "ls"), alert("b", "ls"));
        let mut issue = |alert, word| codes.issue(alert, word, now).unwrap().reveal().to_owned();
        let (yes, no) = (issue(&ask, RemoteWord::Yes), issue(&ask, RemoteWord::No));
        let others = issue(&other, RemoteWord::Yes);
        assert_eq!(yes.len(), 20);
        assert!(yes != no && yes != others);
        let Redeemed::Answer(meaning) = codes.redeem(&format!("{yes}\n"), now) else {
            panic!("a good code");
        };
        assert_eq!(
            (meaning.slot.as_str(), meaning.answer),
            ("a", RemoteWord::Yes)
        );
        assert!(meaning.is_as_shown(&ask));
        assert!(!meaning.is_as_shown(&alert("a", "ls; rm -r x")));
        assert!(
            matches!(codes.redeem(&yes, now), Redeemed::Wrong(_)),
            "used"
        );
        assert!(matches!(codes.redeem(&no, now), Redeemed::Late { .. }));
        for guess in ["", "yes", &"0".repeat(20), &yes[..19]] {
            assert!(matches!(codes.redeem(guess, now), Redeemed::Wrong(_)));
        }
        assert!(matches!(codes.redeem(&others, now), Redeemed::Answer(_)));
    }

    #[test]
    fn a_code_of_an_ask_that_is_over_or_old_tells_the_story() {
        let (mut codes, now) = codes();
        let ask = alert("a", "ls");
        let yes = codes.issue(&ask, RemoteWord::Yes, now).unwrap();
        codes.over(&ask.id, "answered: no, by cli confirm");
        let late = Redeemed::Late {
            slot: "a".into(),
            story: "answered: no, by cli confirm".into(),
        };
        assert_eq!(codes.redeem(yes.reveal(), now), late);
        assert_eq!(codes.redeem(yes.reveal(), now), Redeemed::Nothing);
        let yes = codes.issue(&ask, RemoteWord::No, now).unwrap();
        let later = codes.redeem(yes.reveal(), now + LIFE);
        assert!(matches!(later, Redeemed::Late { .. }), "{later:?}");
    }

    #[test]
    fn another_daemon_has_other_codes_and_there_is_a_bound() {
        let (mut codes, now) = codes();
        let ask = alert("a", "ls");
        let mut others = AnswerCodes::new([8; 32]);
        let stale = others.issue(&ask, RemoteWord::Yes, now).unwrap();
        assert_ne!(codes.issue(&ask, RemoteWord::Yes, now), Some(stale.clone()));
        assert!(matches!(
            codes.redeem(stale.reveal(), now),
            Redeemed::Wrong(_)
        ));
        for n in 0..2 * MOST {
            codes.issue(&alert(&n.to_string(), "ls"), RemoteWord::No, now);
        }
        assert_eq!(codes.codes.len(), MOST);
    }

    #[test]
    fn wrong_codes_raise_an_alarm_and_a_flood_raises_few() {
        let (mut codes, now) = codes();
        assert!(codes.wrong("a code", now).is_some());
        for _ in 0..1000 {
            assert_eq!(codes.wrong("a code", now), None);
        }
        let later = codes.wrong("a code", now + ONE_ALARM).unwrap();
        assert!(later.contains("1001"), "{later}");
    }
}
