//! The first message of the client on stdin, read before the servers are connected to.
//!
//! It names the client and its capabilities. A server with a handshake gets both in the handshake, so that without them its
//! connection of the start could not be used for the client.

use serde_json::Value;
use turnbuckle_protocol::{
    meta::keys,
    types::{ClientCapabilities, Implementation},
};

/// What was read of stdin.
#[derive(Debug, Default)]
pub(super) struct FirstMessage {
    /// The bytes, which may be less or more than a message.
    pub(super) input: Vec<u8>,
    client: Option<(Implementation, ClientCapabilities)>,
}

impl FirstMessage {
    /// Waits for a first message, for a second at most: some clients send none before the server has started.
    #[cfg(unix)]
    pub(super) async fn wait() -> Self {
        let read = tokio::task::spawn_blocking(unix::read_chunk).await;
        Self::new(read.unwrap_or_default())
    }

    /// Reads nothing: this system has no way to stop waiting.
    #[cfg(not(unix))]
    pub(super) async fn wait() -> Self {
        Self::default()
    }

    fn new(input: Vec<u8>) -> Self {
        let line = input.split(|byte| *byte == b'\n').next();
        let message = line.and_then(|line| serde_json::from_slice(line).ok());
        Self {
            client: message.and_then(|message| client(&message)),
            input,
        }
    }

    /// Returns the client, if the message was complete and names it.
    pub(super) fn client(&self) -> Option<(Implementation, ClientCapabilities)> {
        self.client.clone()
    }
}

/// Returns the client that a message names: `initialize` in its parameters, stateless requests in `_meta`.
fn client(message: &Value) -> Option<(Implementation, ClientCapabilities)> {
    let params = message.get("params")?;
    let (info, capabilities) = match message.get("method")?.as_str()? {
        "initialize" => (params.get("clientInfo")?, params.get("capabilities")?),
        _ => {
            let meta = params.get("_meta")?;
            let capabilities = meta.get(keys::CLIENT_CAPABILITIES)?;
            (meta.get(keys::CLIENT_INFO)?, capabilities)
        }
    };
    let info = serde_json::from_value(info.clone()).ok()?;
    let capabilities = serde_json::from_value(capabilities.clone()).ok()?;
    Some((info, capabilities))
}

#[cfg(unix)]
mod unix {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    /// The maximum size of the first read: the capacity of a pipe.
    const MAX_BYTES: usize = 64 * 1024;

    /// Returns what can be read within a second; nothing at the end of the input.
    pub(super) fn read_chunk() -> Vec<u8> {
        let stdin = rustix::stdio::stdin();
        let limit = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
        let is_ready = poll(&mut fds, Some(&limit)).is_ok_and(|ready| ready > 0);
        if !is_ready || !fds[0].revents().contains(PollFlags::IN) {
            return Vec::new();
        }
        let mut chunk = vec![0; MAX_BYTES];
        let length = rustix::io::read(stdin, &mut chunk).unwrap_or(0);
        chunk.truncate(length);
        chunk
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name_and_capabilities(message: &Value) -> Option<(String, Value)> {
        let first = FirstMessage::new(format!("{message}\n").into_bytes());
        let (info, capabilities) = first.client()?;
        Some((info.name, serde_json::to_value(capabilities).unwrap()))
    }

    #[test]
    fn both_eras_name_the_client() {
        let info = json!({ "name": "ada", "version": "1" });
        let capabilities = json!({ "sampling": {} });
        let params = json!({ "clientInfo": info, "capabilities": capabilities });
        let meta = json!({
            "io.modelcontextprotocol/clientInfo": info,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        for message in [
            json!({ "method": "initialize", "params": params }),
            json!({ "method": "server/discover", "params": { "_meta": meta } }),
        ] {
            let expected = Some(("ada".to_owned(), capabilities.clone()));
            assert_eq!(name_and_capabilities(&message), expected);
        }
    }

    #[test]
    fn other_input_names_no_client_and_is_kept() {
        assert_eq!(name_and_capabilities(&json!({ "method": "ping" })), None);
        let part = b"{\"method\": \"initialize\", \"par";
        let first = FirstMessage::new(part.to_vec());
        assert!(first.client().is_none());
        assert_eq!(first.input, part);
    }
}
