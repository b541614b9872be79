//! The keys of an attribute.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Error, Expr, ExprLit, Lit, LitStr, Path, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser},
    parse_quote,
    punctuated::Punctuated,
};

use crate::ErrorCollector;

/// The attribute macro.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MacroKind {
    Tool,
    Prompt,
    Resource,
}

/// The value that a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueSyntax {
    /// Without a value.
    None,
    /// `= true` or `= false`; the key alone means `true`.
    Boolean,
    /// Any expression that converts into a `String`.
    Text,
    /// Any expression that the builder method accepts.
    Expression,
    /// A string literal that is read at compile time.
    Literal,
    /// A string literal with scopes, read at compile time.
    Scopes,
    /// The path of a crate.
    Path,
}

impl MacroKind {
    /// Returns the noun in messages, which is also the name of the macro.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
        }
    }

    /// Returns the name of the error type of handlers.
    pub(crate) fn error(self) -> &'static str {
        match self {
            Self::Tool => "ToolError",
            Self::Prompt | Self::Resource => "RequestError",
        }
    }

    /// Returns the supported keys. Most are builder methods of the same name.
    pub(crate) fn keys(self) -> &'static [(&'static str, ValueSyntax)] {
        match self {
            Self::Tool => &[
                ("name", ValueSyntax::Text),
                ("title", ValueSyntax::Text),
                ("description", ValueSyntax::Text),
                ("read_only", ValueSyntax::None),
                ("destructive", ValueSyntax::Boolean),
                ("idempotent", ValueSyntax::None),
                ("open_world", ValueSyntax::Boolean),
                ("task", ValueSyntax::Text),
                ("task_after_input", ValueSyntax::None),
                ("visible_to", ValueSyntax::Expression),
                ("scopes", ValueSyntax::Scopes),
                ("blocking", ValueSyntax::None),
                ("crate", ValueSyntax::Path),
            ],
            Self::Prompt => &[
                ("name", ValueSyntax::Text),
                ("title", ValueSyntax::Text),
                ("description", ValueSyntax::Text),
                ("visible_to", ValueSyntax::Expression),
                ("scopes", ValueSyntax::Scopes),
                ("crate", ValueSyntax::Path),
            ],
            Self::Resource => &[
                ("uri", ValueSyntax::Literal),
                ("name", ValueSyntax::Text),
                ("title", ValueSyntax::Text),
                ("description", ValueSyntax::Text),
                ("mime_type", ValueSyntax::Text),
                ("visible_to", ValueSyntax::Expression),
                ("scopes", ValueSyntax::Scopes),
                ("crate", ValueSyntax::Path),
            ],
        }
    }
}

/// Keys that are arguments of the constructor; all others are builder methods.
const NON_METHOD_KEYS: &[&str] = &["name", "uri", "blocking", "crate"];

/// The keys of one attribute, checked to be supported, unique and with a valid value.
pub(crate) struct AttributeOptions {
    options: Vec<KeyOption>,
}

/// `key` or `key = value`.
struct KeyOption {
    key: Ident,
    value: Option<Expr>,
}

impl AttributeOptions {
    pub(crate) fn read(kind: MacroKind, keys: TokenStream) -> Result<Self> {
        let keys = Punctuated::<KeyOption, Token![,]>::parse_terminated.parse2(keys)?;
        let options: Vec<_> = keys.into_iter().collect();
        let mut errors = ErrorCollector::default();
        for (index, option) in options.iter().enumerate() {
            errors.check(option.check(kind));
            if options[..index].iter().any(|other| other.key == option.key) {
                let message = format!("`{}` is given twice", option.key);
                errors.add(Error::new(option.key.span(), message));
            }
        }
        errors.finish(Self { options })
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Returns the value of a key.
    pub(crate) fn value(&self, key: &str) -> Option<&Expr> {
        self.find(key)?.value.as_ref()
    }

    /// Returns the value of a key, if it is a string literal.
    pub(crate) fn literal(&self, key: &str) -> Option<&LitStr> {
        self.value(key).and_then(string)
    }

    /// Returns the path of the library.
    pub(crate) fn library(&self) -> Path {
        match self.value("crate") {
            Some(Expr::Path(path)) => path.path.clone(),
            _ => parse_quote!(::turnbuckle),
        }
    }

    /// Returns the builder calls for the keys.
    pub(crate) fn calls(&self) -> TokenStream {
        let methods = self
            .options
            .iter()
            .filter(|option| !NON_METHOD_KEYS.iter().any(|key| option.key == key));
        let calls = methods.map(|KeyOption { key, value }| {
            let argument = match (value, key.to_string().as_str()) {
                (Some(value), "scopes") => scope_list(value),
                (Some(value), _) => quote!(#value),
                (None, "destructive" | "open_world") => quote!(true),
                (None, _) => quote!(),
            };
            quote_spanned!(key.span()=> .#key(#argument))
        });
        calls.collect()
    }

    fn find(&self, key: &str) -> Option<&KeyOption> {
        self.options.iter().find(|option| option.key == key)
    }
}

impl KeyOption {
    fn check(&self, kind: MacroKind) -> Result<()> {
        let Self { key, value } = self;
        let known = kind.keys().iter().find(|(name, _)| key == name);
        let Some((_, takes)) = known else {
            return Err(Error::new(key.span(), unknown_key(key, kind)));
        };
        match (takes, value) {
            (ValueSyntax::None, Some(value)) => {
                Err(Error::new_spanned(value, format!("`{key}` takes no value")))
            }
            (ValueSyntax::Text | ValueSyntax::Expression, None) => Err(missing_value(key, "…")),
            (ValueSyntax::Literal | ValueSyntax::Scopes, None) => Err(missing_value(key, "\"…\"")),
            (ValueSyntax::Literal | ValueSyntax::Scopes, Some(value))
                if string(value).is_none() =>
            {
                Err(Error::new_spanned(
                    value,
                    format!("`{key}` must be a string literal"),
                ))
            }
            (ValueSyntax::Scopes, Some(value))
                if string(value).is_some_and(|text| !has_scopes(text)) =>
            {
                Err(Error::new_spanned(
                    value,
                    "scopes must be visible ASCII characters without `\"` and `\\`, separated by spaces",
                ))
            }
            (ValueSyntax::Path, value) if !matches!(value, Some(Expr::Path(_))) => {
                Err(missing_value(key, "path::to::turnbuckle"))
            }
            _ => Ok(()),
        }
    }
}

impl Parse for KeyOption {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        // Any identifier, because `crate` is a keyword.
        let key = input
            .call(Ident::parse_any)
            .map_err(|error| Error::new(error.span(), "expected a key, such as `name = \"…\"`"))?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Self { key, value })
    }
}

fn unknown_key(key: &Ident, kind: MacroKind) -> String {
    let known: Vec<_> = kind
        .keys()
        .iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let (noun, known) = (kind.noun(), known.join(", "));
    format!(
        "`#[{noun}]` does not have the key `{key}`, only {known}; for other options call methods of the returned builder"
    )
}

fn missing_value(key: &Ident, example: &str) -> Error {
    Error::new(
        key.span(),
        format!("`{key}` needs a value: `{key} = {example}`"),
    )
}

/// Returns the scopes of a literal as an array.
fn scope_list(value: &Expr) -> TokenStream {
    let text = string(value).map(LitStr::value).unwrap_or_default();
    let words = text.split_whitespace();
    quote!([#(#words),*])
}

/// Returns whether the builder would accept the text as scopes.
fn has_scopes(text: &LitStr) -> bool {
    let text = text.value();
    let is_good = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| word.bytes().all(is_good))
}

fn string(value: &Expr) -> Option<&LitStr> {
    match value {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text),
        _ => None,
    }
}
