//! A program that writes without a pause, and never anything that is worth reading.

use super::shells::shells;
use std::time::{Duration, Instant};

/// Most of the time is that of the command's own start, on a loaded machine; a daemon that is deaf never answers.
const SOON: Duration = Duration::from_secs(10);

/// Rows without end, screens that are cleared again and again, questions, and strings that are never ended.
const FLOODS: &str = r#"case "$PWD" in
    */calm) exec cat;;
    */rows) exec yes "$(printf 'x\033[65535b')";;
    */clears) exec yes "$(printf 'x\033[2J\033#8\033[?1049h\033[?1049l\033c')";;
    */asks) exec yes "$(printf '\033[c\033[6n\033[>q\033[21t\033]52;c;?\007\033]11;?\007')";;
    */string) printf '\033]0;'; exec yes title;;
esac"#;

#[test]
fn others_are_answered_while_programs_flood_their_terminals() {
    let floods = ["rows", "clears", "asks", "string"];
    let daemon = shells(&["calm", "rows", "clears", "asks", "string"], FLOODS);
    for round in 0..3 {
        for slot in floods {
            for command in [["status", "calm"], ["screen", "calm"], ["screen", slot]] {
                let began = Instant::now();
                daemon.cmd(&command).expect(0);
                let took = began.elapsed();
                assert!(took < SOON, "{command:?} took {took:?} in round {round}");
            }
        }
    }
    // A stop does not wait behind what is still unread.
    daemon.cmd(&["stop", "--all"]).expect(0);
}
