//! Progress, and what happens when a client gives up.
//!
//! A cancelled call is a dropped future: the handler ends where it waits, and what it holds is dropped with it. What
//! must come to its end nevertheless runs in `cx.detach`.
//!
//! ```console
//! $ cargo run -q --example progress                # on stdio
//! $ cargo run -q --example progress -- --check     # asks itself and prints the answers
//! ```

mod check;

use std::time::Duration;

use check::{Checked, Client, text};
use serde_json::json;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::sleep,
};
use turnbuckle::{Context, Server, Tool, ToolError, stdio};

/// Where handlers leave traces of what they did.
type Traces = UnboundedSender<&'static str>;

/// Half a copy is worse than none: whoever drops it, for whatever reason, removes it.
struct HalfCopy(Traces);

impl Drop for HalfCopy {
    fn drop(&mut self) {
        let _ = self.0.send("removed the half copy");
    }
}

async fn copy(traces: Traces, cx: Context) -> Result<String, ToolError> {
    let half = HalfCopy(traces);
    cx.progress(1, 3).await;
    cx.progress_message(2, Some(3.0), "copying the pictures")
        .await;
    sleep(Duration::from_secs(3600)).await; // a client that gives up ends it here
    drop(half);
    Ok("copied".to_owned())
}

async fn transfer(traces: Traces, cx: Context) -> Result<String, ToolError> {
    cx.progress_message(1, None, "the bank is at work").await;
    let booking = async move {
        sleep(Duration::from_millis(50)).await;
        let _ = traces.send("booked");
        "booked"
    };
    // Money that has left one account has to arrive on the other, whether or not anybody still waits.
    match cx.detach(booking).await {
        Some(state) => Ok(state.to_owned()),
        None => Err(ToolError::new("the booking failed")),
    }
}

fn server() -> (Server, UnboundedReceiver<&'static str>) {
    let (traces, seen) = unbounded_channel();
    let copying = traces.clone();
    let server = Server::new("errands", "1.0.0")
        .tool(Tool::new("copy", move |cx: Context| {
            copy(copying.clone(), cx)
        }))
        .tool(Tool::new("transfer", move |cx: Context| {
            transfer(traces.clone(), cx)
        }));
    (server, seen)
}

#[tokio::main]
async fn main() -> Checked {
    let (server, seen) = server();
    if check::is_wanted() {
        return ask(Client::join(server), seen).await;
    }
    Ok(stdio::serve(server).await?)
}

async fn ask(mut client: Client, mut seen: UnboundedReceiver<&'static str>) -> Checked {
    let id = client
        .begin("tools/call", json!({ "name": "copy" }))
        .await?;
    let progress = client.heard("notifications/progress").await?;
    assert_eq!(progress["progressToken"], id);
    assert_eq!(progress["total"], 3.0);
    let progress = client.heard("notifications/progress").await?;
    assert_eq!(progress["message"], "copying the pictures");
    give_up(&mut client, id).await?;
    assert_eq!(seen.recv().await, Some("removed the half copy"));

    let id = client
        .begin("tools/call", json!({ "name": "transfer" }))
        .await?;
    client.heard("notifications/progress").await?;
    give_up(&mut client, id).await?;
    assert_eq!(seen.recv().await, Some("booked"));

    let result = client.tool("transfer", json!({})).await?;
    assert_eq!(text(&result), "booked");
    Ok(())
}

async fn give_up(client: &mut Client, id: u64) -> Checked {
    let params = json!({ "requestId": id, "reason": "the user lost patience" });
    client.notify("notifications/cancelled", params).await
}
