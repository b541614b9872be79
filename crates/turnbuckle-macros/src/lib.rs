//! `#[tool]`, `#[prompt]` and `#[resource]`: attributes that call the builders of Turnbuckle.
//!
//! Use them as `turnbuckle::tool` and so on, with the feature `macros` of the crate `turnbuckle`. They are
//! shorthands:
//!
//! ```
//! use turnbuckle::{Server, ToolError, tool, types::Icon};
//!
//! /// Forecast for one city.
//! #[tool(read_only)]
//! async fn forecast(
//!     /// City name, for example "Oslo".
//!     city: String,
//!     /// Days ahead.
//!     #[schemars(range(min = 1, max = 7))]
//!     days: Option<u8>,
//! ) -> Result<String, ToolError> {
//!     Ok(format!("{city}: {} days of rain", days.unwrap_or(1)))
//! }
//!
//! let server = Server::new("weather", "1.0.0")
//!     .tool(forecast::tool().icon(Icon::new("https://example.com/rain.svg")));
//! ```
//!
//! is equivalent to
//!
//! ```
//! use schemars::JsonSchema;
//! use serde::Deserialize;
//! use turnbuckle::{Server, Tool, ToolError, types::Icon};
//!
//! #[derive(Deserialize, JsonSchema)]
//! struct Forecast {
//!     /// City name, for example "Oslo".
//!     city: String,
//!     /// Days ahead.
//!     #[schemars(range(min = 1, max = 7))]
//!     days: Option<u8>,
//! }
//!
//! async fn forecast(args: Forecast) -> Result<String, ToolError> {
//!     Ok(format!("{}: {} days of rain", args.city, args.days.unwrap_or(1)))
//! }
//!
//! let server = Server::new("weather", "1.0.0").tool(
//!     Tool::new("forecast", forecast)
//!         .description("Forecast for one city.")
//!         .read_only()
//!         .icon(Icon::new("https://example.com/rain.svg")),
//! );
//! ```
//!
//! # Generated code
//!
//! - **The function is unchanged** and can be called as before. A type of the same name is added, with one function
//!   that returns the builder: `forecast::tool()`, `review::prompt()`, `motd::resource()`, `day::template()`. One
//!   `use` imports both. If a module or another type already has the name, rename the function and set the name for
//!   clients with `name = "…"`.
//! - **Doc comments are descriptions**: that of the function and those of the parameters.
//! - **Parameters are arguments.** One of type `Option` is optional. Serde and schemars attributes on a parameter
//!   apply to its field: `#[serde(default)]`, `#[serde(rename = "…")]`, `#[schemars(range(min = 1))]`. On the
//!   function, below the attribute, they apply to the struct: `#[serde(rename_all = "camelCase")]`. Neither crate has
//!   to be a dependency of yours for that.
//! - **A parameter of type `Context`** is the context, at any position. It is recognized by this name, so an argument
//!   cannot have another type of the same name.
//! - **Other options** are set on the returned builder: icons, `_meta`, completion, cache hints.
//!
//! Attributes work on free functions. For a function with shared state, such as a method, pass a closure to the
//! builder: `Tool::new("add", move |args: Add| add(notes.clone(), args))`.
//!
//! `crate = path` sets the path of the crate `turnbuckle`, if it is re-exported.

mod expansion;
mod function;
mod options;
mod uri;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Item, ItemFn, Result, parse_quote};

use crate::{
    expansion::{MacroExpansion, expand_prompt, expand_resource, expand_tool},
    function::{HandlerFunction, StrippedAttributes, description},
    options::{AttributeOptions, MacroKind},
};

/// Generates a tool from an async function: `forecast::tool()` returns it.
///
/// The function returns a `Result` of a value that a tool may return, with an error that converts into a `ToolError`.
///
/// | Key | Meaning |
/// |---|---|
/// | `name = "…"` | name for clients; default: the name of the function |
/// | `title = "…"` | display name |
/// | `description = "…"` | description for the model; default: the doc comment |
/// | `read_only` | it does not modify its environment |
/// | `destructive = false` | it makes additive changes only; `destructive`: it may make destructive changes |
/// | `idempotent` | repeated calls with the same arguments change nothing more |
/// | `open_world = false` | it does not interact with external entities |
/// | `task = TaskSupport::Optional` | a call may become a task; `TaskSupport::Required`: it must |
/// | `task_after_input` | it requests input before it becomes a task |
/// | `visible_to = path` | visible only to callers for which the function returns true |
/// | `scopes = "files:read files:write"` | only for callers with all of these scopes |
/// | `blocking` | the function is not `async` and runs on a blocking thread |
///
/// ```
/// use turnbuckle::{Context, Server, ToolError, protocol::Principal, tool};
///
/// /// Divides two numbers.
/// #[tool(title = "Division", read_only, idempotent, open_world = false)]
/// async fn divide(
///     dividend: f64,
///     /// Anything but 0.
///     divisor: f64,
///     cx: Context,
/// ) -> Result<f64, ToolError> {
///     if divisor == 0.0 {
///         return Err(ToolError::new("`divisor` must not be 0"));
///     }
///     cx.progress(1, 1).await;
///     Ok(dividend / divisor)
/// }
///
/// /// Counts the words of a file.
/// #[tool(blocking, read_only)]
/// fn count_words(path: String) -> Result<usize, ToolError> {
///     Ok(std::fs::read_to_string(path)?.split_whitespace().count())
/// }
///
/// fn is_operator(principal: Option<&Principal>) -> bool {
///     principal.is_some_and(|who| who.scopes.contains("operate"))
/// }
///
/// /// Restarts the printer.
/// #[tool(visible_to = is_operator)]
/// async fn restart() -> Result<String, ToolError> {
///     Ok("It is warming up.".to_owned())
/// }
///
/// let server = Server::new("desk", "1.0.0")
///     .tool(divide::tool())
///     .tool(count_words::tool())
///     .tool(restart::tool());
/// ```
#[proc_macro_attribute]
pub fn tool(
    keys: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(MacroKind::Tool, keys.into(), item.into()).into()
}

/// Generates a prompt from an async function: `review::prompt()` returns it.
///
/// The arguments are text: `String`, `Option<String>`, or a type that serde deserializes from text. The function
/// returns a `Result` of text (one user message), messages, or `Messages`, with an error that converts into a
/// `RequestError`.
///
/// | Key | Meaning |
/// |---|---|
/// | `name = "…"` | name for clients; default: the name of the function |
/// | `title = "…"` | display name |
/// | `description = "…"` | description; default: the doc comment |
/// | `visible_to = path` | visible only to callers for which the function returns true |
/// | `scopes = "files:read files:write"` | only for callers with all of these scopes |
///
/// ```
/// use turnbuckle::{RequestError, Server, prompt};
///
/// /// Reviews a file.
/// #[prompt(title = "Review")]
/// async fn review(
///     /// The file to look at.
///     file: String,
///     /// How to talk about it.
///     tone: Option<String>,
/// ) -> Result<String, RequestError> {
///     let tone = tone.as_deref().unwrap_or("friendly");
///     Ok(format!("Review {file} line by line, in a {tone} tone."))
/// }
///
/// let server = Server::new("desk", "1.0.0")
///     .prompt(review::prompt().complete("tone", ["friendly", "frank", "formal"]));
/// ```
#[proc_macro_attribute]
pub fn prompt(
    keys: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(MacroKind::Prompt, keys.into(), item.into()).into()
}

/// Generates a resource or resource template from an async function: `motd::resource()` or `day::template()`.
///
/// If the URI has variables (RFC 6570), it is a template, and the parameters of the function are its variables, all
/// of them text. Optional variables (`{?page}`) have the type `Option`. The function returns a `Result` of text,
/// bytes or `Contents`, with an error that converts into a `RequestError`.
///
/// | Key | Meaning |
/// |---|---|
/// | `uri = "…"` | URI or URI template; required |
/// | `name = "…"` | name for clients; default: the name of the function |
/// | `title = "…"` | display name |
/// | `description = "…"` | description; default: the doc comment |
/// | `mime_type = "…"` | media type of the content |
/// | `visible_to = path` | visible only to callers for which the function returns true |
/// | `scopes = "files:read files:write"` | only for callers with all of these scopes |
///
/// ```
/// use std::time::Duration;
/// use turnbuckle::{CacheHint, RequestError, Server, resource};
///
/// /// The message of the day.
/// #[resource(uri = "notes://motd", mime_type = "text/plain")]
/// async fn motd() -> Result<String, RequestError> {
///     Ok("Nothing new today.".to_owned())
/// }
///
/// /// What was noted on a day.
/// #[resource(uri = "notes://days/{date}{?author}")]
/// async fn day(date: String, author: Option<String>) -> Result<String, RequestError> {
///     let author = author.as_deref().unwrap_or("anyone");
///     Ok(format!("Notes of {author} on {date}"))
/// }
///
/// let server = Server::new("desk", "1.0.0")
///     .resource(motd::resource().cache(CacheHint::public(Duration::from_secs(60))))
///     .template(day::template().complete("author", ["Ada", "Grace"]));
/// ```
#[proc_macro_attribute]
pub fn resource(
    keys: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(MacroKind::Resource, keys.into(), item.into()).into()
}

/// Generates the function and its companion type, or the function and the errors. The function is always generated,
/// to avoid follow-up errors at its callers.
fn expand(kind: MacroKind, keys: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = match read_function(kind, item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let stripped = StrippedAttributes::strip(&mut item);
    // Arguments are passed by value even if the function does not need that.
    item.attrs
        .push(parse_quote!(#[allow(clippy::needless_pass_by_value)]));
    let companion =
        companion_type(kind, keys, &item, stripped).unwrap_or_else(Error::into_compile_error);
    quote!(#item #companion)
}

fn read_function(kind: MacroKind, item: TokenStream) -> Result<ItemFn> {
    match syn::parse2(item)? {
        Item::Fn(function) => Ok(function),
        other => {
            let message = format!("`#[{}]` must be on a function", kind.noun());
            Err(Error::new_spanned(other, message))
        }
    }
}

fn companion_type(
    kind: MacroKind,
    keys: TokenStream,
    item: &ItemFn,
    stripped: StrippedAttributes,
) -> Result<TokenStream> {
    let mut errors = ErrorCollector::default();
    let options = errors.check(AttributeOptions::read(kind, keys));
    let function = errors.check(HandlerFunction::read(kind, item, stripped));
    // A doc comment that cannot be read is ignored if `description` is set.
    let description = match &options {
        Some(options) if options.has("description") => None,
        _ => errors.check(description(&item.attrs)).flatten(),
    };
    errors.finish(())?;
    let (Some(options), Some(function)) = (&options, &function) else {
        return Ok(TokenStream::new());
    };
    let expansion = MacroExpansion {
        kind,
        item,
        function,
        options,
        description,
    };
    match kind {
        MacroKind::Tool => expand_tool(&expansion),
        MacroKind::Prompt => expand_prompt(&expansion),
        MacroKind::Resource => expand_resource(&expansion),
    }
}

/// The errors found so far. They are collected, so that all are reported in one compilation.
#[derive(Default)]
pub(crate) struct ErrorCollector {
    found: Option<Error>,
}

impl ErrorCollector {
    pub(crate) fn add(&mut self, error: Error) {
        match &mut self.found {
            Some(found) => found.combine(error),
            None => self.found = Some(error),
        }
    }

    /// Records the error, if any.
    pub(crate) fn check<T>(&mut self, outcome: Result<T>) -> Option<T> {
        outcome.map_err(|error| self.add(error)).ok()
    }

    /// Returns the value, or the collected errors.
    pub(crate) fn finish<T>(self, value: T) -> Result<T> {
        match self.found {
            Some(found) => Err(found),
            None => Ok(value),
        }
    }
}
