//! The SOCKS5 face of a proxy: no user or one with a password, `CONNECT` only, names as they come (RFC 1928, RFC 1929).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::relay::relay;
use super::{Passed, ProxyFault, Shared, Stream, Way, hang};

const VERSION: u8 = 5;
const NO_USER: u8 = 0;
const USER: u8 = 2;
const NOTHING_ACCEPTABLE: u8 = 0xff;
const CONNECT: u8 = 1;

/// Replies.
const GRANTED: u8 = 0;
const HOST_UNREACHABLE: u8 = 4;
const COMMAND_NOT_SUPPORTED: u8 = 7;
const ADDRESS_NOT_SUPPORTED: u8 = 8;

pub(super) async fn serve(mut client: Box<dyn Stream>, shared: &Arc<Shared>, connection: usize) -> io::Result<()> {
    if client.read_u8().await? != VERSION {
        return Ok(());
    }
    let methods = counted(&mut client).await?;
    if shared.fault() == Some(ProxyFault::Hang) {
        return hang(client).await;
    }
    let mut user = None;
    if methods.contains(&USER) {
        say(&mut client, &[VERSION, USER]).await?;
        let _ = client.read_u8().await?;
        let (name, password) = (text(counted(&mut client).await?), text(counted(&mut client).await?));
        if !shared.admits(Some((&name, &password))) {
            say(&mut client, &[1, 1]).await?;
            return client.shutdown().await;
        }
        say(&mut client, &[1, 0]).await?;
        user = Some(name);
    } else if methods.contains(&NO_USER) && shared.is_open() {
        say(&mut client, &[VERSION, NO_USER]).await?;
    } else {
        shared.admits(None);
        say(&mut client, &[VERSION, NOTHING_ACCEPTABLE]).await?;
        return client.shutdown().await;
    }
    let mut head = [0; 4];
    client.read_exact(&mut head).await?;
    let [_, command, _, address] = head;
    let host = match address {
        1 => Ipv4Addr::from(client.read_u32().await?).to_string(),
        3 => text(counted(&mut client).await?),
        4 => Ipv6Addr::from(client.read_u128().await?).to_string(),
        _ => return refuse(client, ADDRESS_NOT_SUPPORTED).await,
    };
    let port = client.read_u16().await?;
    if command != CONNECT {
        return refuse(client, COMMAND_NOT_SUPPORTED).await;
    }
    let place = shared.note(Passed::new(connection, Way::Socks, format!("{host}:{port}"), user));
    let Some(target) = shared.reach(&host, port).await else {
        return refuse(client, HOST_UNREACHABLE).await;
    };
    shared.amend(place, |passed| passed.seen_as = target.local_addr().ok());
    say(&mut client, &reply(GRANTED)).await?;
    relay(client, target, shared, place).await
}

/// As many bytes as the first one says.
async fn counted(client: &mut Box<dyn Stream>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::from(client.read_u8().await?)];
    client.read_exact(&mut bytes).await?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A reply with the bound address left out, as proxies may.
fn reply(code: u8) -> [u8; 10] {
    [VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0]
}

async fn refuse(mut client: Box<dyn Stream>, code: u8) -> io::Result<()> {
    say(&mut client, &reply(code)).await?;
    client.shutdown().await
}

async fn say(client: &mut Box<dyn Stream>, bytes: &[u8]) -> io::Result<()> {
    client.write_all(bytes).await?;
    client.flush().await
}
