use super::*;
use rustix::process::Signal as SignalNumber;

request! {
    /// Sends a signal to the program in the foreground of a session.
    Signal = "signal", SignalParams => Done;
    access: PersonOnly;
    scope: Scope::Keys;
    names: Accepts::Sessions {
        claude: "missiond interrupt ID, or missiond stop ID",
        shell: "missiond keys ID ctrl+c, or missiond stop ID",
    };
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SignalParams {
    /// The id of the session.
    pub slot: String,
    /// A name such as `INT`, or a number.
    pub signal: String,
}

async fn answer(call: Call<'_>, params: SignalParams) -> Result<Done, RpcError> {
    let slot = call.slot(&params.slot)?;
    let signal = signal_number(&params.signal)?;
    request(&slot, |reply| TerminalRequest::Signal { signal, reply }).await?;
    Ok(done(&slot))
}

/// The signals that can be given by name.
const SIGNALS: &[(&str, SignalNumber)] = &[
    ("HUP", SignalNumber::HUP),
    ("INT", SignalNumber::INT),
    ("QUIT", SignalNumber::QUIT),
    ("ABRT", SignalNumber::ABORT),
    ("KILL", SignalNumber::KILL),
    ("USR1", SignalNumber::USR1),
    ("USR2", SignalNumber::USR2),
    ("PIPE", SignalNumber::PIPE),
    ("ALRM", SignalNumber::ALARM),
    ("TERM", SignalNumber::TERM),
    ("CONT", SignalNumber::CONT),
    ("STOP", SignalNumber::STOP),
    ("TSTP", SignalNumber::TSTP),
    ("TTIN", SignalNumber::TTIN),
    ("TTOU", SignalNumber::TTOU),
    ("WINCH", SignalNumber::WINCH),
];

fn signal_number(word: &str) -> Result<i32, RpcError> {
    let upper = word.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = SIGNALS.iter().find(|(known, _)| *known == name);
    let numbered = || word.parse().ok().and_then(SignalNumber::from_named_raw);
    let signal = named.map(|(_, signal)| *signal).or_else(numbered);
    signal.map(SignalNumber::as_raw).ok_or_else(|| {
        let names: Vec<&str> = SIGNALS.iter().map(|(name, _)| *name).collect();
        RpcError::new(Fault::Usage, format!("there is no signal `{word}`"))
            .next(format!("a number, or one of {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for word in ["INT", "int", "SIGINT", "2"] {
            assert_eq!(signal_number(word).unwrap(), 2, "{word}");
        }
        for word in ["", "0", "-1", "999", "NOPE", "SIG"] {
            assert_eq!(
                signal_number(word).unwrap_err().fault,
                Fault::Usage,
                "{word}"
            );
        }
    }
}
