//! A server's question, asked at the terminal as a form.
//!
//! Whoever answers sees which server asks; its words are set apart by a bar, so that they cannot pass for ours.

mod field;

use std::io::{self, BufRead, Write};

use serde_json::Value;
use turnbuckle_protocol::types::elicitation::{ElicitSchema, PrimitiveSchema};
use turnbuckle_protocol::types::{ElicitAction, ElicitResult, JsonObject};

use crate::output::{plain, style};

/// Somebody who can be asked.
pub(crate) struct Talk<'a> {
    reader: &'a mut dyn BufRead,
    writer: &'a mut dyn Write,
}

/// How a question ends before it has its answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    /// The user said no.
    #[error("declined")]
    Declined,
    /// The user is gone.
    #[error("cancelled")]
    Cancelled,
    /// The terminal broke.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<'a> Talk<'a> {
    /// Talks to somebody who reads what is written, and writes what is read.
    pub(crate) fn new(reader: &'a mut dyn BufRead, writer: &'a mut dyn Write) -> Self {
        Self { reader, writer }
    }

    /// Shows text.
    pub(crate) fn say(&mut self, text: &str) -> Result<(), Ended> {
        Ok(self.writer.write_all(text.as_bytes())?)
    }

    /// Shows words of a peer, behind a bar.
    pub(crate) fn quote(&mut self, text: &str) -> Result<(), Ended> {
        let bar = style::paint(style::DIM, "│");
        let lines = plain::block(text);
        let lines = lines
            .trim_end()
            .lines()
            .map(|line| format!("{bar} {line}\n"));
        self.say(&lines.collect::<String>())
    }

    /// Asks for a line; its end and the spaces around it are taken off.
    pub(crate) fn ask(&mut self, prompt: &str) -> Result<String, Ended> {
        self.say(prompt)?;
        self.writer.flush()?;
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            self.say("\n")?;
            return Err(Ended::Cancelled);
        }
        match line.trim() {
            ":decline" => Err(Ended::Declined),
            ":cancel" => Err(Ended::Cancelled),
            answer => Ok(answer.to_owned()),
        }
    }
}

/// Asks a form, field by field, until it can be sent.
pub(crate) fn fill(
    server: &str,
    message: &str,
    schema: &ElicitSchema,
    talk: &mut Talk<'_>,
) -> io::Result<ElicitResult> {
    match answers(server, message, schema, talk) {
        Ok(content) => Ok(ElicitResult::accept(content)),
        Err(Ended::Declined) => Ok(ElicitResult::new(ElicitAction::Decline)),
        Err(Ended::Cancelled) => Ok(ElicitResult::new(ElicitAction::Cancel)),
        Err(Ended::Io(error)) => Err(error),
    }
}

fn answers(
    server: &str,
    message: &str,
    schema: &ElicitSchema,
    talk: &mut Talk<'_>,
) -> Result<JsonObject, Ended> {
    let server = style::paint(style::NAME, &plain::line(server));
    talk.say(&format!("\n{server} asks:\n"))?;
    talk.quote(message)?;
    talk.say("Enter takes what is in brackets, `:decline` says no, Ctrl-D cancels.\n")?;
    let mut content = JsonObject::new();
    loop {
        content = ask_fields(schema, &content, talk)?;
        show(&content, talk)?;
        loop {
            let answer = talk.ask("Send it? [y]es, [e]dit, [n]o: ")?;
            match answer.to_lowercase().as_str() {
                "y" | "yes" => return Ok(content),
                "n" | "no" => return Err(Ended::Declined),
                "e" | "edit" => break,
                _ => {}
            }
        }
    }
}

/// Asks for every field; what was answered before is offered again.
fn ask_fields(
    schema: &ElicitSchema,
    before: &JsonObject,
    talk: &mut Talk<'_>,
) -> Result<JsonObject, Ended> {
    let mut content = JsonObject::new();
    for (name, field) in schema.fields() {
        let offered = before.get(name).cloned().or_else(|| field::default(field));
        let required = schema.is_required(name);
        if let Some(value) = ask_field(name, field, required, offered, talk)? {
            content.insert(name.to_owned(), value);
        }
    }
    Ok(content)
}

fn ask_field(
    name: &str,
    field: &PrimitiveSchema,
    required: bool,
    offered: Option<Value>,
    talk: &mut Talk<'_>,
) -> Result<Option<Value>, Ended> {
    talk.say(&head(name, field, required))?;
    if let Some(description) = field::description(field) {
        talk.quote(description)?;
    }
    for (at, option) in field::options(field).iter().enumerate() {
        let title = option.title.as_deref().unwrap_or(&option.value);
        talk.say(&format!("  {}) {}\n", at + 1, plain::line(title)))?;
    }
    let prompt = match &offered {
        Some(value) => format!("[{}] > ", shown(value)),
        None => "> ".to_owned(),
    };
    loop {
        let answer = talk.ask(&prompt)?;
        match (answer.is_empty(), &offered) {
            (true, Some(_)) => return Ok(offered),
            (true, None) if !required => return Ok(None),
            (true, None) => talk.say("  this is needed\n")?,
            (false, _) => match field::read(field, &answer) {
                Ok(value) => return Ok(Some(value)),
                Err(problem) => talk.say(&format!("  {}\n", plain::line(&problem)))?,
            },
        }
    }
}

fn head(name: &str, field: &PrimitiveSchema, required: bool) -> String {
    let title = field::title(field).unwrap_or(name);
    let title = style::paint(style::NAME, &plain::line(title));
    let need = if required { "" } else { ", may stay empty" };
    format!("\n{title} ({}{need})\n", field::kind(field))
}

fn show(content: &JsonObject, talk: &mut Talk<'_>) -> Result<(), Ended> {
    talk.say("\n")?;
    for (name, value) in content {
        talk.say(&format!("  {} = {}\n", plain::line(name), shown(value)))?;
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => plain::line(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => plain::line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests;
