//! `#[tool]`, `#[prompt]` and `#[resource]`: what the builders of Turnbuckle do, said with attributes on functions.
//!
//! Use them as `turnbuckle::tool` and so on, with the feature `macros` of the crate `turnbuckle`. They only shorten:
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
//! is, written with the builder,
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
//! # What an attribute does
//!
//! - **The function stays** what it is and can be called as before. Beside it comes a type of the same name, with one
//!   function that makes the builder's value: `forecast::tool()`, `review::prompt()`, `motd::resource()`,
//!   `day::template()`. One `use` brings both. Where the name is taken by a module or another type, the function needs
//!   another one, and `name = "…"` tells clients the one you want.
//! - **Doc comments are descriptions**: that of the function, whole, and those of the parameters.
//! - **Parameters are arguments.** One of type `Option` may be left out. Attributes for serde and schemars on a
//!   parameter mean what they mean on a field: `#[serde(default)]`, `#[serde(rename = "…")]`,
//!   `#[schemars(range(min = 1))]`. On the function, below the attribute, they mean what they mean on a struct:
//!   `#[serde(rename_all = "camelCase")]`. Neither crate needs to be a dependency of yours for that.
//! - **A parameter of type `Context`** is the context, wherever it stands in the list. It is known by this name, so an
//!   argument cannot have a type of your own that is called the same.
//! - **What the keys do not say** is said on the value: icons, `_meta`, completion, cache hints.
//!
//! Attributes are for free functions. One that shares state with others, a method for example, is given to the builder
//! in a closure: `Tool::new("add", move |args: Add| add(notes.clone(), args))`.
//!
//! `crate = path` says where the crate `turnbuckle` is, for those who re-export it.

mod argument;
mod doc;
mod expansion;
mod function;
mod gather;
mod kind;
mod options;
mod prompt;
mod resource;
mod tool;
mod uri;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Item, ItemFn, Result, parse_quote};

use crate::{
    expansion::Expansion,
    function::{Function, Taken},
    gather::Gather,
    kind::Kind,
    options::Options,
};

/// Makes a tool of an async function: `forecast::tool()` returns it.
///
/// The function returns a `Result` of what a tool may return, with an error that becomes a `ToolError`.
///
/// | Key | What it says |
/// |---|---|
/// | `name = "…"` | what clients call it; else the name of the function |
/// | `title = "…"` | a name for people |
/// | `description = "…"` | what the model reads; else the doc comment |
/// | `read_only` | it changes nothing |
/// | `destructive = false` | it only adds; `destructive`, that it may destroy something |
/// | `idempotent` | calling it again with the same arguments changes nothing more |
/// | `open_world = false` | it stays within this server's own world |
/// | `task = TaskSupport::Optional` | a call may become a task; `TaskSupport::Required`, that it must |
/// | `asks_first` | it asks something before it becomes a task |
/// | `visible_to = path` | only for callers of whom the function says so |
/// | `scopes = "files:read files:write"` | only for callers who have all of these scopes |
/// | `blocking` | the function is not `async` and runs on the pool of blocking threads |
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
    expand(Kind::Tool, keys.into(), item.into()).into()
}

/// Makes a prompt of an async function: `review::prompt()` returns it.
///
/// Its arguments are text: `String`, `Option<String>`, or a type that serde reads from text. It returns a `Result` of
/// text (one user message), messages, or `Messages`, with an error that becomes a `RequestError`.
///
/// | Key | What it says |
/// |---|---|
/// | `name = "…"` | what clients call it; else the name of the function |
/// | `title = "…"` | a name for people |
/// | `description = "…"` | what it is for; else the doc comment |
/// | `visible_to = path` | only for callers of whom the function says so |
/// | `scopes = "files:read files:write"` | only for callers who have all of these scopes |
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
    expand(Kind::Prompt, keys.into(), item.into()).into()
}

/// Makes a resource of an async function, or a template of resources: `motd::resource()` or `day::template()`.
///
/// If the URI has variables (RFC 6570), it is a template, and the parameters of the function are its variables, all of
/// them text. Those that a URI may come without (`{?page}`) are of type `Option`. The function returns a `Result` of
/// text, bytes or `Contents`, with an error that becomes a `RequestError`.
///
/// | Key | What it says |
/// |---|---|
/// | `uri = "…"` | the address or the template of addresses; always needed |
/// | `name = "…"` | what clients call it; else the name of the function |
/// | `title = "…"` | a name for people |
/// | `description = "…"` | what it is; else the doc comment |
/// | `mime_type = "…"` | what kind of content it has |
/// | `visible_to = path` | only for callers of whom the function says so |
/// | `scopes = "files:read files:write"` | only for callers who have all of these scopes |
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
    expand(Kind::Resource, keys.into(), item.into()).into()
}

/// Writes the function and what comes beside it, or the function and what is wrong with it: without the function, every
/// place that calls it would be wrong too.
fn expand(kind: Kind, keys: TokenStream, item: TokenStream) -> TokenStream {
    let mut item = match read_function(kind, item) {
        Ok(item) => item,
        Err(error) => return error.into_compile_error(),
    };
    let taken = Taken::off(&mut item);
    // Arguments are owned, whether the function needs that or not.
    item.attrs
        .push(parse_quote!(#[allow(clippy::needless_pass_by_value)]));
    let beside = beside(kind, keys, &item, taken).unwrap_or_else(Error::into_compile_error);
    quote!(#item #beside)
}

fn read_function(kind: Kind, item: TokenStream) -> Result<ItemFn> {
    match syn::parse2(item)? {
        Item::Fn(function) => Ok(function),
        other => {
            let message = format!("`#[{}]` stands on a function", kind.noun());
            Err(Error::new_spanned(other, message))
        }
    }
}

fn beside(kind: Kind, keys: TokenStream, item: &ItemFn, taken: Taken) -> Result<TokenStream> {
    let mut gather = Gather::default();
    let options = gather.check(Options::read(kind, keys));
    let function = gather.check(Function::read(kind, item, taken));
    // A comment that cannot be read does not matter where the description is said in another way.
    let description = match &options {
        Some(options) if options.has("description") => None,
        _ => gather.check(doc::description(&item.attrs)).flatten(),
    };
    gather.finish(())?;
    let (Some(options), Some(function)) = (&options, &function) else {
        return Ok(TokenStream::new());
    };
    let expansion = Expansion {
        kind,
        item,
        function,
        options,
        description,
    };
    match kind {
        Kind::Tool => tool::expand(&expansion),
        Kind::Prompt => prompt::expand(&expansion),
        Kind::Resource => resource::expand(&expansion),
    }
}
