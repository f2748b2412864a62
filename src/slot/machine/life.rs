//! Starting, ending and starting again.

use super::up::{Hands, Up};
use super::*;
use crate::config::Restart;
use crate::control::protocol::Fault;

impl Machine {
    pub(super) fn start(&mut self, token: Token) {
        match &mut self.life {
            Life::Up(_) => self.reply(token, Ok(Reply::Done)),
            Life::Down { .. } | Life::Waiting { .. } => {
                self.backoff.forget();
                self.starters.push(token);
                self.launch();
            }
            Life::Launching { .. } => self.starters.push(token),
            Life::Stopping {
                tokens,
                start_again,
            } => {
                *start_again = true;
                tokens.push(token);
            }
        }
    }

    /// A person's stop always wins, also against a restart that is under way.
    pub(super) fn stop(&mut self, token: Token, start_again: bool) {
        match &mut self.life {
            Life::Down { .. } | Life::Waiting { .. } if start_again => self.start(token),
            Life::Down { .. } => self.reply(token, Ok(Reply::Done)),
            Life::Waiting { .. } => {
                self.go_down(State::Exited, Some("stopped".to_owned()));
                self.tell(What::Stopped {
                    by: "person".to_owned(),
                });
                self.reply(token, Ok(Reply::Done));
            }
            Life::Up(_) => {
                self.let_go("the slot is being stopped");
                self.life = Life::Stopping {
                    tokens: vec![token],
                    start_again,
                };
                self.effects.push(Effect::StopTree);
            }
            Life::Launching { .. } if start_again => self.starters.push(token),
            Life::Launching { stoppers } => stoppers.push(token),
            Life::Stopping {
                tokens,
                start_again: again,
            } => {
                *again = start_again;
                tokens.push(token);
            }
        }
    }

    pub(super) fn launch(&mut self) {
        self.life = Life::Launching {
            stoppers: Vec::new(),
        };
        self.effects.push(Effect::Spawn);
    }

    pub(super) fn started(&mut self, pid: u32, continues: bool) {
        let up = Life::Up(Box::new(Up::new(pid, continues)));
        let before = std::mem::replace(&mut self.life, up);
        for token in std::mem::take(&mut self.starters) {
            self.reply(token, Ok(Reply::Done));
        }
        if let Life::Launching { stoppers } = before {
            for token in stoppers {
                self.stop(token, false);
            }
        }
    }

    pub(super) fn not_started(&mut self, reason: String, cure: bool, now: Instant) {
        if let Life::Launching { stoppers } = &mut self.life {
            for token in std::mem::take(stoppers) {
                self.reply(token, Ok(Reply::Done));
            }
        }
        let error = RpcError::new(
            Fault::Failed,
            format!("{} did not start: {reason}", self.config.name),
        );
        for token in std::mem::take(&mut self.starters) {
            self.reply(token, Err(error.clone()));
        }
        if cure {
            self.try_again(reason, Duration::ZERO, now);
        } else {
            self.give_up(reason);
        }
    }

    pub(super) fn ended(&mut self, report: ExitReport, said: Option<String>, now: Instant) {
        let cause = cause_of(&report, said.as_deref());
        self.tell(What::Exit {
            code: report.code,
            signal: report.signal,
            cause: cause.clone(),
        });
        match std::mem::replace(
            &mut self.life,
            Life::Down {
                state: State::Exited,
                reason: None,
            },
        ) {
            Life::Up(up) => self.died(*up, &report, cause, now),
            Life::Stopping {
                tokens,
                start_again,
            } => self.stopped(tokens, start_again),
            other => self.life = other,
        }
    }

    fn stopped(&mut self, tokens: Vec<Token>, start_again: bool) {
        if start_again {
            self.restarts += 1;
            self.backoff.forget();
            self.starters.extend(tokens);
            return self.launch();
        }
        self.go_down(State::Exited, Some("stopped".to_owned()));
        self.tell(What::Stopped {
            by: "person".to_owned(),
        });
        for token in tokens {
            self.reply(token, Ok(Reply::Done));
        }
    }

    /// The program ended and nobody had asked it to.
    fn died(&mut self, up: Up, report: &ExitReport, cause: String, now: Instant) {
        let healthy_for = up
            .reached_idle
            .map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let refused_trust = up.ended_at_trust() && report.signal.is_none();
        self.life = Life::Up(Box::new(up));
        self.let_go(&format!("the program ended ({cause})"));
        let clean = report.code == Some(0);
        match self.config.restart {
            _ if refused_trust => self.give_up("the folder is not trusted".to_owned()),
            Restart::Never => self.go_down(State::Exited, Some(cause)),
            Restart::OnFailure if clean => self.go_down(State::Exited, Some(cause)),
            Restart::OnFailure | Restart::Always => self.try_again(cause, healthy_for, now),
        }
    }

    fn try_again(&mut self, reason: String, healthy_for: Duration, now: Instant) {
        if self.config.restart == Restart::Never {
            return self.give_up(reason);
        }
        match self.backoff.failed(now, healthy_for) {
            backoff::Next::After(delay) => {
                self.restarts += 1;
                let attempt = self.restarts;
                self.tell(What::Restart {
                    attempt,
                    delay_ms: delay.as_millis() as u64,
                });
                self.life = Life::Waiting {
                    until: now + delay,
                    attempt,
                    reason,
                };
            }
            backoff::Next::GiveUp => {
                self.give_up(format!("{reason}; it failed too often in a short time"))
            }
        }
    }

    fn give_up(&mut self, reason: String) {
        self.tell(What::GaveUp {
            reason: reason.clone(),
        });
        self.go_down(State::Error, Some(reason));
    }

    fn go_down(&mut self, state: State, reason: Option<String>) {
        let why = reason
            .clone()
            .unwrap_or_else(|| "the slot is not running".to_owned());
        self.refuse_queue(&why);
        self.life = Life::Down { state, reason };
    }

    /// Everybody who waits for the program is told that it is gone.
    fn let_go(&mut self, why: &str) {
        let Some(up) = self.up_mut() else { return };
        let hands = std::mem::replace(&mut up.hands, Hands::Free);
        let turn = up.turn.take();
        let mut waiting: Vec<Token> = turn.and_then(|turn| turn.token).into_iter().collect();
        match hands {
            Hands::Pasting { message, .. } | Hands::Submitting { message, .. } => {
                waiting.extend(message.token)
            }
            Hands::Choosing(choosing) if choosing.decided => self.chosen(choosing),
            Hands::Choosing(choosing) => waiting.extend(choosing.token),
            Hands::Interrupting { tokens, .. } => waiting.extend(tokens),
            Hands::Clearing { .. } | Hands::Free => {}
        }
        for token in waiting {
            self.reply(token, Err(RpcError::new(Fault::Failed, why)));
        }
    }

    fn refuse_queue(&mut self, why: &str) {
        for message in std::mem::take(&mut self.queue) {
            let Some(token) = message.token else { continue };
            self.reply(
                token,
                Err(RpcError::new(Fault::Failed, format!("not sent: {why}"))),
            );
        }
    }
}

/// How it ended, for a person.
fn cause_of(report: &ExitReport, said: Option<&str>) -> String {
    let how = match (report.code, report.signal) {
        (_, Some(signal)) => format!("killed by signal {signal}"),
        (Some(0), _) => "clean exit".to_owned(),
        (Some(code), _) => format!("exit {code}"),
        (None, None) => "its shim was lost".to_owned(),
    };
    match said {
        Some(said) if report.code != Some(0) => format!("{how}: {said}"),
        _ => how,
    }
}
