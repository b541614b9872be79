//! Resources: fixed URIs, templates, and update notifications for subscribers.
//!
//! ```console
//! $ cargo example resources                # on stdio
//! $ cargo example resources -- --check     # calls itself and prints the responses
//! ```

#[path = "checks/resources.rs"]
mod check;

use std::{
    collections::BTreeMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use schemars::JsonSchema;
use serde::Deserialize;
use turnbuckle::{
    Context, RequestError, Resource, ResourceTemplate, Server, Tool, ToolError, stdio,
};

/// Temperatures by room. Clones share them.
#[derive(Clone, Default)]
struct House(Arc<Mutex<BTreeMap<String, i32>>>);

impl House {
    fn temperature(&self, room: &str) -> Option<i32> {
        let rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.get(room).copied()
    }

    fn heat(&self, room: String, celsius: i32) {
        let mut rooms = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.insert(room, celsius);
    }
}

/// The variables of the template, decoded.
#[derive(Deserialize)]
struct Room {
    room: String,
}

async fn read_room(house: House, Room { room }: Room) -> Result<String, RequestError> {
    let celsius = house.temperature(&room);
    celsius
        .map(|celsius| format!("{celsius} °C"))
        .ok_or_else(RequestError::not_found)
}

#[derive(Deserialize, JsonSchema)]
struct Heat {
    room: String,
    celsius: i32,
}

async fn heat(house: House, args: Heat, cx: Context) -> Result<String, ToolError> {
    let uri = format!("house://room/{}", args.room);
    house.heat(args.room, args.celsius);
    cx.resource_updated(uri); // notifies subscribed clients, which read it again
    Ok("It is getting warmer.".to_owned())
}

fn server() -> Server {
    let house = House::default();
    house.heat("kitchen".to_owned(), 19);
    let (reading, heating) = (house.clone(), house);
    Server::new("house", "1.0.0")
        .resource(
            Resource::text("house://about", "about", "A house with a kitchen.").title("About"),
        )
        .resource(
            // A function is called for each read; it may return bytes.
            Resource::new("house://plan", "plan", async || {
                Ok(vec![0x89, b'P', b'N', b'G'])
            })
            .mime_type("image/png"),
        )
        .template(
            ResourceTemplate::new("house://room/{room}", "room", move |room| {
                read_room(reading.clone(), room)
            })
            .description("How warm a room is")
            .mime_type("text/plain"),
        )
        .tool(Tool::new("heat", move |args, cx| {
            heat(heating.clone(), args, cx)
        }))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    if check::is_requested() {
        return check::run().await;
    }
    Ok(stdio::serve(server()).await?)
}
