#![doc = include_str!("attributes.md")]

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

#[doc = include_str!("tool.md")]
#[proc_macro_attribute]
pub fn tool(
    keys: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(MacroKind::Tool, keys.into(), item.into()).into()
}

#[doc = include_str!("prompt.md")]
#[proc_macro_attribute]
pub fn prompt(
    keys: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    expand(MacroKind::Prompt, keys.into(), item.into()).into()
}

#[doc = include_str!("resource.md")]
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
