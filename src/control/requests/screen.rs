use super::*;

/// Memory held for each line of the scrollback.
const LINE: usize = 1 << 10;
/// The maximum of lines that a terminal keeps.
const MOST_LINES: usize = 10_000;

request! {
    /// Shows the screen of a slot or session.
    Screen = "screen", ScreenParams => ScreenAnswer;
    access: Granted("screen", Slots);
    scope: Scope::View;
}

async fn answer(call: Call<'_>, params: ScreenParams) -> Result<ScreenAnswer, RpcError> {
    let slot = call.slot(&params.slot)?;
    let _turn = match params.lines {
        None => call.list_turn().await,
        Some(lines) => call
            .hold(lines.min(MOST_LINES) * LINE)
            .await
            .map(|_| None)?,
    };
    slot.request(|reply| SlotCommand::Screen { params, reply })
        .await
}
