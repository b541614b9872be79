//! `turnbuckle context stats`.

use std::time::{Duration, SystemTime};

use turnbuckle_context::transfer::{self, PlaceStats};

use super::Shelf;
use crate::context::Context;
use crate::failure::Result;
use crate::output::plain;
use crate::output::table::Table;

/// Show how much is remembered of each project
#[derive(Debug, clap::Args)]
pub(super) struct Stats {}

impl Stats {
    pub(super) fn run(&self, shelf: &Shelf, context: &Context) -> Result {
        let stats = transfer::stats(&shelf.library, &shelf.owner)?;
        if context.options.json {
            return context.json(&stats);
        }
        for damaged in &stats.damaged {
            context.voice.say(&format!("{}\n", plain::line(damaged)));
        }
        if stats.places.is_empty() {
            context.voice.say("nothing is kept yet\n");
            return Ok(());
        }
        let head = [
            "project",
            "checkpoints",
            "remediations",
            "skills",
            "files",
            "size",
            "last saved",
        ];
        let mut table = Table::new(&head);
        for place in &stats.places {
            table.row(row(place));
        }
        context.print(&table.render(context.width()))
    }
}

fn row(place: &PlaceStats) -> [String; 7] {
    let items = |kind: &str| place.items.get(kind).copied().unwrap_or(0).to_string();
    let root = place.root.as_deref().or(place.project.as_deref());
    [
        plain::line(root.unwrap_or("(all projects)")),
        items("checkpoint"),
        items("remediation"),
        items("skill"),
        place.files.to_string(),
        size(place.bytes),
        place.newest.map_or_else(String::new, time),
    ]
}

fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

fn time(milliseconds: i64) -> String {
    let since = Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0));
    let time = humantime::format_rfc3339_seconds(SystemTime::UNIX_EPOCH + since).to_string();
    // To the minute is enough for people.
    time.get(..16)
        .map_or(time.clone(), |minute| minute.replace('T', " "))
}
