//! Progress and cancellation.
//!
//! Cancelling a call drops the future of its handler at the current `.await`, with all its values. Work that must complete
//! runs in `cx.detach`.
//!
//! ```console
//! $ cargo example progress                # on stdio
//! $ cargo example progress -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/progress.rs"]
mod check;

use std::{error::Error, time::Duration};

use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::sleep,
};
use turnbuckle::{Context, Server, Tool, ToolError, stdio};

/// Records what the handlers did.
type Traces = UnboundedSender<&'static str>;

/// A partial copy, which is removed when it is dropped.
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
    sleep(Duration::from_secs(3600)).await; // cancellation drops the handler here
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
    // Money that left one account must arrive on the other, even if the call is cancelled.
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
async fn main() -> Result<(), Box<dyn Error>> {
    let (server, seen) = server();
    if check::is_requested() {
        return check::run(server, seen).await;
    }
    Ok(stdio::serve(server).await?)
}
