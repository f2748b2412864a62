//! A connection that has become the live terminal of a slot: keys in one direction, the screen in the other.

use super::dispatch::Dispatcher;
use crate::control::requests::AttachParams;
use crate::core::model::Person;
use crate::core::model::envelope::{ErrorObject, Line, Request};
use crate::core::model::{Ending, Fault, FromViewer, MAX_FRAME, RpcError, ToViewer};
use crate::os::outbox::{Budget, Outbox, Unread};
use crate::os::peer::Peer;
use crate::slot::{Seat, SlotHandle, Viewer, Viewing};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio_util::bytes::Bytes;
use tokio_util::codec::{Framed, FramedParts, LengthDelimitedCodec, LinesCodec};

/// A client whose terminal takes nothing for this long is dropped.
const PATIENCE: Duration = Duration::from_secs(10);

type Screen = SplitSink<Framed<UnixStream, LengthDelimitedCodec>, Bytes>;

/// Serves the connection until either side ends it.
pub(super) async fn serve(
    mut lines: Framed<UnixStream, LinesCodec>,
    request: Request,
    (peer, dispatcher): (&Peer, &Dispatcher),
    budget: &Budget,
) {
    let (feed, waiting) = budget.queue();
    let (end, ending) = oneshot::channel();
    let seated = seat(&request, peer, dispatcher, (feed, end)).await;
    let answer = match &seated {
        Ok((_, seat)) => serde_json::to_value(&seat.answer)
            .map_err(|error| RpcError::new(Fault::Failed, error.to_string())),
        Err(refusal) => Err(refusal.clone()),
    };
    let line = Line::answer(request.id, answer.map_err(ErrorObject::from));
    let told = lines.send(serde_json::to_string(&line).unwrap_or_default());
    let told = tokio::time::timeout(PATIENCE, told).await;
    let Ok((slot, seat)) = seated else { return };
    if matches!(told, Ok(Ok(()))) {
        let (screen, keys) = as_frames(lines).split();
        tokio::select! {
            () = listen(keys, &slot, seat.id) => {}
            () = show(screen, waiting, ending) => {}
        }
    }
    // A slot that is gone has no viewers.
    let _ = slot.view(Viewing::Leave { id: seat.id }).await;
}

async fn seat(
    request: &Request,
    peer: &Peer,
    dispatcher: &Dispatcher,
    (feed, end): (Outbox, oneshot::Sender<Ending>),
) -> Result<(SlotHandle, Seat), RpcError> {
    let Request { method, params, .. } = request;
    dispatcher.permit(peer, method, params).await?;
    let params: AttachParams = serde_json::from_value(params.clone())
        .map_err(|error| RpcError::bad_params(method, &error))?;
    let slot = dispatcher.slot(&params.slot)?;
    let viewer = Viewer {
        size: (params.cols, params.rows),
        read_only: params.read_only,
        person: Person {
            via: request.method.clone(),
            ..peer.person()
        },
        feed,
        end,
    };
    let seat = slot.join(viewer).await?;
    Ok((slot, seat))
}

/// Turns the connection into frames. Bytes that were read after the last line begin the first frame.
pub(super) fn as_frames(
    lines: Framed<UnixStream, LinesCodec>,
) -> Framed<UnixStream, LengthDelimitedCodec> {
    let FramedParts { io, read_buf, .. } = lines.into_parts();
    let codec = LengthDelimitedCodec::builder()
        .max_frame_length(MAX_FRAME)
        .new_codec();
    let mut parts = FramedParts::new::<Bytes>(io, codec);
    parts.read_buf = read_buf;
    Framed::from_parts(parts)
}

/// Passes keys on until the client's terminal is gone.
async fn listen(
    mut keys: SplitStream<Framed<UnixStream, LengthDelimitedCodec>>,
    slot: &SlotHandle,
    id: u64,
) {
    while let Some(Ok(frame)) = keys.next().await {
        let viewing = match FromViewer::decode(&frame) {
            Ok(FromViewer::Keys(bytes)) => Viewing::Keys { id, bytes },
            Ok(FromViewer::Resize { cols, rows }) => Viewing::Resize {
                id,
                size: (cols, rows),
            },
            Err(error) => {
                tracing::warn!("{error}");
                return;
            }
        };
        if slot.view(viewing).await.is_err() {
            return;
        }
    }
}

/// Sends output until there is no more, or the client takes none.
async fn show(mut screen: Screen, mut waiting: Unread, ending: oneshot::Receiver<Ending>) {
    while let Some(piece) = waiting.next().await {
        if !sent(&mut screen, &ToViewer::Output(piece.bytes.to_vec())).await {
            return;
        }
    }
    if let Ok(ending) = ending.await {
        sent(&mut screen, &ToViewer::End(ending)).await;
    }
}

async fn sent(screen: &mut Screen, message: &ToViewer) -> bool {
    for frame in message.encode() {
        let sending = tokio::time::timeout(PATIENCE, screen.send(Bytes::from(frame)));
        if !matches!(sending.await, Ok(Ok(()))) {
            return false;
        }
    }
    true
}
