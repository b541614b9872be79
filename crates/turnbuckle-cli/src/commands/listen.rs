//! `turnbuckle listen`.

use serde_json::{Value, json};
use turnbuckle_client::{Change, Client, SubscriptionEvent};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::{
    cli::{CommandArg, TargetArg},
    connection,
    context::CommandContext,
    error::Result,
    output::{json, sanitize},
    target::PositionalArgs,
};

/// Print change notifications until Ctrl-C
///
/// With --json, each change is one line.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle listen [OPTIONS] <TARGET>\n       turnbuckle listen [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct ListenCommand {
    #[command(flatten)]
    target: TargetArg,
    /// Subscribe to this resource; repeatable
    #[arg(long = "resource", value_name = "URI")]
    resources: Vec<String>,
    #[command(flatten)]
    program: CommandArg,
}

impl ListenCommand {
    pub(crate) async fn run(self, context: &CommandContext) -> Result {
        let (target, args) =
            PositionalArgs::split("listen", self.target.target, &self.program.command)?;
        args.finish()?;
        let mut filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true);
        if !self.resources.is_empty() {
            filter = filter.resource_subscriptions(self.resources);
        }
        connection::until_interrupted(&target, context, async |client| {
            listen(client, filter, context).await
        })
        .await
    }
}

async fn listen(client: &Client, filter: SubscriptionFilter, context: &CommandContext) -> Result {
    let mut changes = client.listen(filter).await?;
    while let Some(event) = changes.next().await {
        let event = event?;
        if context.options.json {
            context.write_bytes(json::line(&document(&event)).as_bytes())?;
        } else {
            match &event {
                SubscriptionEvent::Change(change) => context.print(&(line(change) + "\n"))?,
                SubscriptionEvent::Acknowledged(_) => {
                    context.ui.print("listening; press Ctrl-C to stop\n");
                }
                SubscriptionEvent::Interrupted => context
                    .ui
                    .print("connection interrupted; changes may have been missed\n"),
                _ => context.ui.print("the server ended the subscription\n"),
            }
        }
    }
    Ok(())
}

fn line(change: &Change) -> String {
    match change {
        Change::Tools => "tools changed".to_owned(),
        Change::Prompts => "prompts changed".to_owned(),
        Change::Resources => "resources changed".to_owned(),
        Change::Resource { uri } => format!("{} changed", sanitize::line(uri)),
        Change::ElicitationComplete { elicitation_id } => {
            format!(
                "url elicitation {} completed",
                sanitize::line(elicitation_id)
            )
        }
        other => sanitize::line(&format!("{other:?}")),
    }
}

fn document(event: &SubscriptionEvent) -> Value {
    match event {
        SubscriptionEvent::Acknowledged(filter) => json!({ "listening": filter }),
        SubscriptionEvent::Change(Change::Tools) => json!({ "changed": "tools" }),
        SubscriptionEvent::Change(Change::Prompts) => json!({ "changed": "prompts" }),
        SubscriptionEvent::Change(Change::Resources) => json!({ "changed": "resources" }),
        SubscriptionEvent::Change(Change::Resource { uri }) => {
            json!({ "changed": "resource", "uri": uri })
        }
        SubscriptionEvent::Change(Change::ElicitationComplete { elicitation_id }) => {
            json!({ "changed": "visit", "elicitationId": elicitation_id })
        }
        SubscriptionEvent::Change(Change::Task(task)) => json!({ "changed": "task", "task": task }),
        SubscriptionEvent::Interrupted => json!({ "interrupted": true }),
        _ => json!({ "ended": true }),
    }
}
