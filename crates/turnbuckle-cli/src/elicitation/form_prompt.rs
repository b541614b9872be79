//! Form elicitation at the terminal.
//!
//! The prompt names the server that asks. Text of the server has a bar in front, so that it cannot imitate text of
//! this program.

use std::io::{self, BufRead, Write};

use serde_json::{Number, Value};
use turnbuckle_protocol::types::{
    ElicitAction, ElicitResult, JsonObject,
    elicitation::{
        ElicitSchema, EnumOption, MultiSelectSchema, NumberKind, NumberSchema, PrimitiveSchema,
        StringFormat, StringSchema,
    },
};
use turnbuckle_text::formats;

use crate::output::{sanitize, style};

/// Reads answers from the user, and prints prompts.
pub(crate) struct Prompter<'a> {
    reader: &'a mut dyn BufRead,
    writer: &'a mut dyn Write,
}

/// The reason why a prompt ended without an answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PromptError {
    /// The user declined.
    #[error("declined")]
    Declined,
    /// The user cancelled, or the input ended.
    #[error("cancelled")]
    Cancelled,
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<'a> Prompter<'a> {
    /// Creates a prompter that reads answers from `reader` and prints to `writer`.
    pub(crate) fn new(reader: &'a mut dyn BufRead, writer: &'a mut dyn Write) -> Self {
        Self { reader, writer }
    }

    /// Prints text.
    pub(crate) fn print(&mut self, text: &str) -> Result<(), PromptError> {
        Ok(self.writer.write_all(text.as_bytes())?)
    }

    /// Prints text of a peer, with a bar in front of each line.
    pub(crate) fn quote(&mut self, text: &str) -> Result<(), PromptError> {
        let bar = style::styled(style::DIM, "│");
        let lines = sanitize::block(text);
        let lines = lines
            .trim_end()
            .lines()
            .map(|line| format!("{bar} {line}\n"));
        self.print(&lines.collect::<String>())
    }

    /// Prints a prompt and reads a line, without surrounding whitespace.
    pub(crate) fn read_answer(&mut self, prompt: &str) -> Result<String, PromptError> {
        self.print(prompt)?;
        self.writer.flush()?;
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            self.print("\n")?;
            return Err(PromptError::Cancelled);
        }
        match line.trim() {
            ":decline" => Err(PromptError::Declined),
            ":cancel" => Err(PromptError::Cancelled),
            answer => Ok(answer.to_owned()),
        }
    }
}

/// Prompts for a form, field by field, until the user sends, declines or cancels it.
pub(crate) fn fill_form(
    server: &str,
    message: &str,
    schema: &ElicitSchema,
    prompter: &mut Prompter<'_>,
) -> io::Result<ElicitResult> {
    match prompt_form(server, message, schema, prompter) {
        Ok(content) => Ok(ElicitResult::accept(content)),
        Err(PromptError::Declined) => Ok(ElicitResult::new(ElicitAction::Decline)),
        Err(PromptError::Cancelled) => Ok(ElicitResult::new(ElicitAction::Cancel)),
        Err(PromptError::Io(error)) => Err(error),
    }
}

fn prompt_form(
    server: &str,
    message: &str,
    schema: &ElicitSchema,
    prompter: &mut Prompter<'_>,
) -> Result<JsonObject, PromptError> {
    let server = style::styled(style::NAME, &sanitize::line(server));
    prompter.print(&format!("\n{server} requests input:\n"))?;
    prompter.quote(message)?;
    prompter.print("Press Enter to accept the value in brackets. Enter `:decline` to decline, press Ctrl-D to cancel.\n")?;
    let mut content = JsonObject::new();
    loop {
        content = prompt_fields(schema, &content, prompter)?;
        print_content(&content, prompter)?;
        loop {
            let answer = prompter.read_answer("Send it? [y]es, [e]dit, [n]o: ")?;
            match answer.to_lowercase().as_str() {
                "y" | "yes" => return Ok(content),
                "n" | "no" => return Err(PromptError::Declined),
                "e" | "edit" => break,
                _ => {}
            }
        }
    }
}

/// Prompts for every field. Earlier answers are the defaults.
fn prompt_fields(
    schema: &ElicitSchema,
    before: &JsonObject,
    prompter: &mut Prompter<'_>,
) -> Result<JsonObject, PromptError> {
    let mut content = JsonObject::new();
    for (name, field) in schema.fields() {
        let default = before.get(name).cloned().or_else(|| valid_default(field));
        let required = schema.is_required(name);
        if let Some(value) = prompt_field(name, field, required, default, prompter)? {
            content.insert(name.to_owned(), value);
        }
    }
    Ok(content)
}

fn prompt_field(
    name: &str,
    field: &PrimitiveSchema,
    required: bool,
    default: Option<Value>,
    prompter: &mut Prompter<'_>,
) -> Result<Option<Value>, PromptError> {
    prompter.print(&field_heading(name, field, required))?;
    if let Some(description) = field_description(field) {
        prompter.quote(description)?;
    }
    for (at, option) in field_options(field).iter().enumerate() {
        let title = option.title.as_deref().unwrap_or(&option.value);
        prompter.print(&format!("  {}) {}\n", at + 1, sanitize::line(title)))?;
    }
    let prompt = match &default {
        Some(value) => format!("[{}] > ", format_value(value)),
        None => "> ".to_owned(),
    };
    loop {
        let answer = prompter.read_answer(&prompt)?;
        match (answer.is_empty(), &default) {
            (true, Some(_)) => return Ok(default),
            (true, None) if !required => return Ok(None),
            (true, None) => prompter.print("  a value is required\n")?,
            (false, _) => match parse_field(field, &answer) {
                Ok(value) => return Ok(Some(value)),
                Err(problem) => prompter.print(&format!("  {}\n", sanitize::line(&problem)))?,
            },
        }
    }
}

fn field_heading(name: &str, field: &PrimitiveSchema, required: bool) -> String {
    let title = field_title(field).unwrap_or(name);
    let title = style::styled(style::NAME, &sanitize::line(title));
    let need = if required { "" } else { ", optional" };
    format!("\n{title} ({}{need})\n", type_hint(field))
}

fn print_content(content: &JsonObject, prompter: &mut Prompter<'_>) -> Result<(), PromptError> {
    prompter.print("\n")?;
    for (name, value) in content {
        prompter.print(&format!(
            "  {} = {}\n",
            sanitize::line(name),
            format_value(value)
        ))?;
    }
    Ok(())
}

fn format_value(value: &Value) -> String {
    match value {
        Value::String(text) => sanitize::line(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items
            .iter()
            .map(format_value)
            .collect::<Vec<_>>()
            .join(", "),
        other => sanitize::line(&other.to_string()),
    }
}

/// Returns the title of a field.
fn field_title(field: &PrimitiveSchema) -> Option<&str> {
    match field {
        PrimitiveSchema::String(field) => field.title.as_deref(),
        PrimitiveSchema::Number(field) => field.title.as_deref(),
        PrimitiveSchema::Boolean(field) => field.title.as_deref(),
        PrimitiveSchema::SingleSelect(field) => field.title.as_deref(),
        PrimitiveSchema::MultiSelect(field) => field.title.as_deref(),
        _ => None,
    }
}

/// Returns the description of a field.
fn field_description(field: &PrimitiveSchema) -> Option<&str> {
    match field {
        PrimitiveSchema::String(field) => field.description.as_deref(),
        PrimitiveSchema::Number(field) => field.description.as_deref(),
        PrimitiveSchema::Boolean(field) => field.description.as_deref(),
        PrimitiveSchema::SingleSelect(field) => field.description.as_deref(),
        PrimitiveSchema::MultiSelect(field) => field.description.as_deref(),
        _ => None,
    }
}

/// Returns the default of a field, unless the field's own constraints reject it.
fn valid_default(field: &PrimitiveSchema) -> Option<Value> {
    schema_default(field).filter(|value| is_valid(field, value))
}

fn schema_default(field: &PrimitiveSchema) -> Option<Value> {
    match field {
        PrimitiveSchema::String(field) => field.default.clone().map(Value::from),
        PrimitiveSchema::Number(field) => field.default.and_then(number),
        PrimitiveSchema::Boolean(field) => field.default.map(Value::from),
        PrimitiveSchema::SingleSelect(field) => field.default.clone().map(Value::from),
        PrimitiveSchema::MultiSelect(field) => field.default.clone().map(Value::from),
        _ => None,
    }
}

/// Returns the options of a select field.
fn field_options(field: &PrimitiveSchema) -> &[EnumOption] {
    match field {
        PrimitiveSchema::SingleSelect(field) => field.options(),
        PrimitiveSchema::MultiSelect(field) => field.options(),
        _ => &[],
    }
}

/// Returns a short description of the values that a field accepts.
fn type_hint(field: &PrimitiveSchema) -> String {
    match field {
        PrimitiveSchema::String(field) => match field.format {
            Some(StringFormat::Email) => "email address",
            Some(StringFormat::Uri) => "URI",
            Some(StringFormat::Date) => "date like 2026-01-31",
            Some(StringFormat::DateTime) => "date and time like 2026-01-31T12:00:00Z",
            _ => "text",
        }
        .to_owned(),
        PrimitiveSchema::Number(field) => {
            let kind = match field.kind {
                NumberKind::Integer => "integer",
                NumberKind::Number => "number",
            };
            kind.to_owned() + &range_text(field.minimum, field.maximum)
        }
        PrimitiveSchema::Boolean(_) => "yes or no".to_owned(),
        PrimitiveSchema::SingleSelect(_) => "number of an option".to_owned(),
        PrimitiveSchema::MultiSelect(field) => {
            let min = field.min_items.map(|min| min as f64);
            let max = field.max_items.map(|max| max as f64);
            format!(
                "numbers of options{}, separated by commas",
                range_text(min, max)
            )
        }
        _ => "text".to_owned(),
    }
}

/// Parses text as the value of a field, or returns what is expected.
fn parse_field(field: &PrimitiveSchema, text: &str) -> Result<Value, String> {
    match field {
        PrimitiveSchema::String(field) => parse_text(field, text),
        PrimitiveSchema::Number(field) => parse_number(field, text),
        PrimitiveSchema::Boolean(_) => match text.to_lowercase().as_str() {
            "y" | "yes" | "true" => Ok(true.into()),
            "n" | "no" | "false" => Ok(false.into()),
            _ => Err("enter `yes` or `no`".to_owned()),
        },
        PrimitiveSchema::SingleSelect(field) => {
            parse_choice(field.options(), text).map(Value::from)
        }
        PrimitiveSchema::MultiSelect(field) => parse_choices(field, text),
        _ => Ok(text.into()),
    }
}

fn is_valid(field: &PrimitiveSchema, value: &Value) -> bool {
    let is_option = |value: &Value| {
        let mut options = field_options(field).iter();
        options.any(|option| value.as_str() == Some(&*option.value))
    };
    match (field, value) {
        (PrimitiveSchema::String(field), Value::String(text)) => parse_text(field, text).is_ok(),
        (PrimitiveSchema::Number(field), value) => parse_number(field, &value.to_string()).is_ok(),
        (PrimitiveSchema::SingleSelect(_), value) => is_option(value),
        (PrimitiveSchema::MultiSelect(field), Value::Array(values)) => {
            values.iter().all(is_option) && is_valid_count(field, values.len())
        }
        _ => true,
    }
}

fn parse_text(field: &StringSchema, text: &str) -> Result<Value, String> {
    let length = text.chars().count() as u64;
    if let Some(min) = field.min_length.filter(|&min| length < min) {
        return Err(format!("enter at least {min} characters"));
    }
    if let Some(max) = field.max_length.filter(|&max| length > max) {
        return Err(format!("enter at most {max} characters"));
    }
    let fits = match field.format {
        Some(StringFormat::Email) => formats::is_email(text),
        Some(StringFormat::Uri) => formats::is_uri(text),
        Some(StringFormat::Date) => formats::is_date(text),
        Some(StringFormat::DateTime) => formats::is_date_time(text),
        _ => true,
    };
    if fits {
        Ok(text.into())
    } else {
        Err(format!("expected: {}", type_hint(&field.clone().into())))
    }
}

fn parse_number(field: &NumberSchema, text: &str) -> Result<Value, String> {
    let wrong = || format!("expected: {}", type_hint(&field.clone().into()));
    let value: f64 = text.parse().map_err(|_| wrong())?;
    let inside = field.minimum.is_none_or(|min| value >= min)
        && field.maximum.is_none_or(|max| value <= max);
    if !inside {
        return Err(wrong());
    }
    match (text.parse::<i64>(), field.kind) {
        (Ok(whole), _) => Ok(whole.into()),
        (Err(_), NumberKind::Integer) => Err(wrong()),
        (Err(_), NumberKind::Number) => number(value).ok_or_else(wrong),
    }
}

fn parse_choices(field: &MultiSelectSchema, text: &str) -> Result<Value, String> {
    let words = text
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty());
    let mut chosen: Vec<String> = Vec::new();
    for word in words {
        let value = parse_choice(field.options(), word)?;
        if !chosen.contains(&value) {
            chosen.push(value);
        }
    }
    if is_valid_count(field, chosen.len()) {
        Ok(chosen.into())
    } else {
        Err(format!("expected: {}", type_hint(&field.clone().into())))
    }
}

fn is_valid_count(field: &MultiSelectSchema, count: usize) -> bool {
    let count = count as u64;
    let enough = field.min_items.is_none_or(|min| count >= min);
    enough && field.max_items.is_none_or(|max| count <= max)
}

/// Finds an option by its number, value or title.
fn parse_choice(options: &[EnumOption], text: &str) -> Result<String, String> {
    let numbered = text
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_sub(1));
    let numbered = numbered.and_then(|at| options.get(at));
    let named = || {
        let mut options = options.iter();
        options.find(|option| option.value == text || option.title.as_deref() == Some(text))
    };
    let option = numbered.or_else(named);
    option.map(|option| option.value.clone()).ok_or_else(|| {
        format!(
            "`{text}` is not an option: enter a number from 1 to {}",
            options.len()
        )
    })
}

fn range_text(min: Option<f64>, max: Option<f64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) => format!(", {min} to {max}"),
        (Some(min), None) => format!(", {min} or more"),
        (None, Some(max)) => format!(", {max} or less"),
        (None, None) => String::new(),
    }
}

/// Returns a JSON number; whole numbers are integers.
fn number(value: f64) -> Option<Value> {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        Some((value as i64).into())
    } else {
        Number::from_f64(value).map(Value::Number)
    }
}

#[cfg(test)]
mod tests;
