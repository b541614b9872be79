//! A client that subscribes to changes.
//!
//! ```console
//! $ cargo example client_subscriptions --features client -- --check
//! ```
#![expect(clippy::print_stdout, reason = "the example shows what it does")]

use std::error::Error;

use turnbuckle::{
    Resource, Server,
    client::{Change, Client, LifecycleMode, SubscriptionEvent},
    memory, types,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    for era in [LifecycleMode::Modern, LifecycleMode::Legacy] {
        let server = Server::new("weather", "1.0.0").resource(Resource::text(
            "weather://oslo",
            "Oslo",
            "rain",
        ));
        let client = Client::builder("watcher", "1.0.0").lifecycle_mode(era);
        let client = memory::connect_with(client, server.clone()).await?;

        let filter = types::SubscriptionFilter::new()
            .resources_list_changed(true)
            .resource_subscriptions(vec!["weather://oslo".to_owned()]);
        let mut changes = client.listen(filter).await?;
        server.resource_updated("weather://oslo");
        server.add_resource(Resource::text("weather://rome", "Rome", "sun"));

        let mut heard = Vec::new();
        while heard.len() < 2 {
            match changes.next().await.ok_or("the stream ended")?? {
                SubscriptionEvent::Acknowledged(filter) => println!("listening for {filter:?}"),
                SubscriptionEvent::Change(change) => {
                    println!("changed: {change:?}");
                    heard.push(change);
                }
                other => println!("{other:?}"),
            }
        }
        let uri = "weather://oslo".to_owned();
        assert!(heard.contains(&Change::Resource { uri }));
        assert!(heard.contains(&Change::Resources));
        assert_eq!(client.resources().all().await?.len(), 2);
    }
    Ok(())
}
