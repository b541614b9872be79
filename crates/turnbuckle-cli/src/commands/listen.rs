//! `turnbuckle listen`.

use serde_json::{Value, json};
use turnbuckle_client::{Change, Client, Heard};
use turnbuckle_protocol::types::SubscriptionFilter;

use crate::arguments::{Program, TargetWord};
use crate::context::Context;
use crate::failure::Result;
use crate::output::{json, plain};
use crate::session;
use crate::target::Words;

/// Show what changes, until Ctrl-C
///
/// With --json, each change is a line.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "turnbuckle listen [OPTIONS] <TARGET>\n       turnbuckle listen [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct Listen {
    #[command(flatten)]
    target: TargetWord,
    /// Watch this resource, too; can be given again
    #[arg(long = "resource", value_name = "URI")]
    resources: Vec<String>,
    #[command(flatten)]
    program: Program,
}

impl Listen {
    pub(crate) async fn run(self, context: &Context) -> Result {
        let (target, words) = Words::split("listen", self.target.target, &self.program.command)?;
        words.end()?;
        let mut filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true);
        if !self.resources.is_empty() {
            filter = filter.resource_subscriptions(self.resources);
        }
        session::until_stopped(&target, context, async |client| {
            listen(client, filter, context).await
        })
        .await
    }
}

async fn listen(client: &Client, filter: SubscriptionFilter, context: &Context) -> Result {
    let mut changes = client.listen(filter).await?;
    while let Some(heard) = changes.next().await {
        let heard = heard?;
        match context.options.json {
            true => context.bytes(json::line(&document(&heard)).as_bytes())?,
            false => match &heard {
                Heard::Change(change) => context.print(&(line(change) + "\n"))?,
                Heard::Listening(_) => context.voice.say("listening; Ctrl-C stops\n"),
                Heard::Interrupted => context
                    .voice
                    .say("interrupted; changes may have been missed\n"),
                _ => context.voice.say("the server ended it\n"),
            },
        }
    }
    Ok(())
}

fn line(change: &Change) -> String {
    match change {
        Change::Tools => "tools changed".to_owned(),
        Change::Prompts => "prompts changed".to_owned(),
        Change::Resources => "resources changed".to_owned(),
        Change::Resource { uri } => format!("{} changed", plain::line(uri)),
        Change::Visit { elicitation_id } => {
            format!("visit {} is over", plain::line(elicitation_id))
        }
        other => plain::line(&format!("{other:?}")),
    }
}

fn document(heard: &Heard) -> Value {
    match heard {
        Heard::Listening(filter) => json!({ "listening": filter }),
        Heard::Change(Change::Tools) => json!({ "changed": "tools" }),
        Heard::Change(Change::Prompts) => json!({ "changed": "prompts" }),
        Heard::Change(Change::Resources) => json!({ "changed": "resources" }),
        Heard::Change(Change::Resource { uri }) => json!({ "changed": "resource", "uri": uri }),
        Heard::Change(Change::Visit { elicitation_id }) => {
            json!({ "changed": "visit", "elicitationId": elicitation_id })
        }
        Heard::Change(Change::Task(task)) => json!({ "changed": "task", "task": task }),
        Heard::Interrupted => json!({ "interrupted": true }),
        _ => json!({ "ended": true }),
    }
}
