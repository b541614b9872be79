//! Resources: one address, many addresses by a template, and telling those who watch that something is new.
//!
//! ```console
//! $ cargo run -q --example resources                # on stdio
//! $ cargo run -q --example resources -- --check     # asks itself and prints the answers
//! ```

mod check;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use check::{Checked, Client};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use turnbuckle::{
    Context, RequestError, Resource, ResourceTemplate, Server, Tool, ToolError, stdio,
};

/// Temperatures by room. A clone is the same house.
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
    cx.resource_updated(uri); // whoever watches this address is told, and reads it again
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
            // A function is asked each time; bytes are as good as text.
            Resource::new("house://plan", "plan", async || {
                Ok(vec![0x89, b'P', b'N', b'G'])
            })
            .mime_type("image/png"),
        )
        .template(
            ResourceTemplate::new("house://room/{room}", "room", move |room, _: Context| {
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
async fn main() -> Checked {
    if check::is_wanted() {
        return ask(Client::join(server())).await;
    }
    Ok(stdio::serve(server()).await?)
}

async fn ask(mut client: Client) -> Checked {
    let kitchen = json!({ "uri": "house://room/kitchen" });
    let watched = json!({ "resourceSubscriptions": ["house://room/kitchen"] });
    client
        .begin("subscriptions/listen", json!({ "notifications": watched }))
        .await?;
    client
        .heard("notifications/subscriptions/acknowledged")
        .await?;

    let list = client.call("resources/list", json!({})).await?;
    assert_eq!(list["resources"][0]["uri"], "house://about");
    let list = client.call("resources/templates/list", json!({})).await?;
    let template = &list["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "house://room/{room}");

    let plan = client
        .call("resources/read", json!({ "uri": "house://plan" }))
        .await?;
    assert_eq!(plan["contents"][0]["blob"], "iVBORw==");
    let read = client.call("resources/read", kitchen.clone()).await?;
    assert_eq!(read["contents"][0]["text"], "19 °C");

    let arguments = json!({ "room": "kitchen", "celsius": 21 });
    client.tool("heat", arguments).await?;
    let updated = client.heard("notifications/resources/updated").await?;
    assert_eq!(updated["uri"], "house://room/kitchen");
    let read = client.call("resources/read", kitchen).await?;
    assert_eq!(read["contents"][0]["text"], "21 °C");

    let attic = json!({ "uri": "house://room/attic" });
    let error = client.refused("resources/read", attic).await?;
    assert_eq!(error["data"]["uri"], "house://room/attic");
    Ok(())
}
