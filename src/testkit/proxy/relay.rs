//! Moves bytes between client and target, counts them, and does what the present fault says.

use std::future::pending;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;

use super::{ProxyFault, Shared, Stream};

/// Moves bytes until the target has ended, or a fault ends it. `place` is that in the log.
pub(super) async fn relay(client: Box<dyn Stream>, target: TcpStream, shared: &Shared, place: usize) -> io::Result<()> {
    let (from_client, to_client) = split(client);
    let (from_target, to_target) = target.into_split();
    let up = async {
        up(from_client, to_target, shared, place).await?;
        // A client that has said everything still waits for the answer.
        pending::<io::Result<()>>().await
    };
    tokio::select! {
        ended = up => ended,
        ended = down(from_target, to_client, shared, place) => ended,
        ended = faulted(shared) => ended,
    }
}

async fn up(
    mut from: ReadHalf<Box<dyn Stream>>,
    mut to: impl AsyncWrite + Unpin,
    shared: &Shared,
    place: usize,
) -> io::Result<()> {
    let mut piece = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut piece).await?;
        let Some(bytes) = piece.get(..read).filter(|bytes| !bytes.is_empty()) else { break };
        wait_while_hanging(shared).await;
        to.write_all(bytes).await?;
        shared.amend(place, |passed| passed.sent += read as u64);
    }
    to.shutdown().await
}

async fn down(
    mut from: impl AsyncRead + Unpin,
    mut to: WriteHalf<Box<dyn Stream>>,
    shared: &Shared,
    place: usize,
) -> io::Result<()> {
    let mut piece = vec![0; 16 * 1024];
    let mut passed_on = 0_usize;
    loop {
        let read = from.read(&mut piece).await?;
        let mut bytes = piece.get(..read).unwrap_or_default();
        if bytes.is_empty() {
            return to.shutdown().await;
        }
        wait_while_hanging(shared).await;
        let mut is_last = false;
        match shared.fault() {
            Some(ProxyFault::Slow(time)) => tokio::time::sleep(time).await,
            Some(ProxyFault::CutAfter(most)) => {
                is_last = passed_on + bytes.len() >= most;
                bytes = bytes.get(..most.saturating_sub(passed_on)).unwrap_or(bytes);
            }
            _ => {}
        }
        to.write_all(bytes).await?;
        to.flush().await?;
        passed_on += bytes.len();
        shared.amend(place, |passed| passed.received += bytes.len() as u64);
        if is_last {
            return Ok(());
        }
    }
}

async fn wait_while_hanging(shared: &Shared) {
    let mut fault = shared.fault.subscribe();
    // The sender lives as long as the proxy.
    let _ = fault.wait_for(|fault| *fault != Some(ProxyFault::Hang)).await;
}

/// Ends when the fault is one that closes open connections.
async fn faulted(shared: &Shared) -> io::Result<()> {
    let mut fault = shared.fault.subscribe();
    let _ = fault.wait_for(|fault| *fault == Some(ProxyFault::Refuse)).await;
    Ok(())
}
