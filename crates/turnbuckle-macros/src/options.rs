//! The keys in the brackets of an attribute.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::{
    Error, Expr, ExprLit, Lit, LitStr, Path, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser},
    parse_quote,
    punctuated::Punctuated,
};

use crate::{
    gather::Gather,
    kind::{Kind, Takes},
};

/// Keys that say how the value is begun; all others are methods to call on it.
const NOT_METHODS: &[&str] = &["name", "uri", "blocking", "crate"];

/// The keys of one attribute, each known, given once, and with the value it takes.
pub(crate) struct Options {
    given: Vec<Given>,
}

/// `key` or `key = value`.
struct Given {
    key: Ident,
    value: Option<Expr>,
}

impl Options {
    pub(crate) fn read(kind: Kind, keys: TokenStream) -> Result<Self> {
        let given = Punctuated::<Given, Token![,]>::parse_terminated.parse2(keys)?;
        let options = Self {
            given: given.into_iter().collect(),
        };
        let mut gather = Gather::default();
        for (at, given) in options.given.iter().enumerate() {
            gather.check(given.check(kind));
            if options.given[..at].iter().any(|one| one.key == given.key) {
                let message = format!("`{}` is given twice", given.key);
                gather.add(Error::new(given.key.span(), message));
            }
        }
        gather.finish(options)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// The value of a key that takes one.
    pub(crate) fn value(&self, key: &str) -> Option<&Expr> {
        self.find(key)?.value.as_ref()
    }

    /// The value of a key, if it is written as a literal.
    pub(crate) fn literal(&self, key: &str) -> Option<&LitStr> {
        self.value(key).and_then(string)
    }

    /// Where the library is.
    pub(crate) fn library(&self) -> Path {
        match self.value("crate") {
            Some(Expr::Path(path)) => path.path.clone(),
            _ => parse_quote!(::turnbuckle),
        }
    }

    /// Calls of the builder's methods that the keys stand for.
    pub(crate) fn calls(&self) -> TokenStream {
        let methods = self
            .given
            .iter()
            .filter(|given| !NOT_METHODS.iter().any(|key| given.key == key));
        let calls = methods.map(|Given { key, value }| {
            let argument = match (value, key.to_string().as_str()) {
                (Some(value), "scopes") => words(value),
                (Some(value), _) => quote!(#value),
                (None, "destructive" | "open_world") => quote!(true),
                (None, _) => quote!(),
            };
            quote_spanned!(key.span()=> .#key(#argument))
        });
        calls.collect()
    }

    fn find(&self, key: &str) -> Option<&Given> {
        self.given.iter().find(|given| given.key == key)
    }
}

impl Given {
    fn check(&self, kind: Kind) -> Result<()> {
        let Self { key, value } = self;
        let known = kind.keys().iter().find(|(name, _)| key == name);
        let Some((_, takes)) = known else {
            return Err(Error::new(key.span(), unknown(key, kind)));
        };
        match (takes, value) {
            (Takes::Nothing, Some(value)) => {
                Err(Error::new_spanned(value, format!("`{key}` takes no value")))
            }
            (Takes::Text | Takes::Value, None) => Err(wants_value(key, "…")),
            (Takes::Literal | Takes::Words, None) => Err(wants_value(key, "\"…\"")),
            (Takes::Literal | Takes::Words, Some(value)) if string(value).is_none() => {
                Err(Error::new_spanned(
                    value,
                    format!("`{key}` is read while compiling, so it must be a string literal"),
                ))
            }
            (Takes::Words, Some(value)) if string(value).is_some_and(|text| !has_scopes(text)) => {
                Err(Error::new_spanned(
                    value,
                    "scopes are words of visible ASCII characters without `\"` and `\\`, with spaces between them",
                ))
            }
            (Takes::Path, value) if !matches!(value, Some(Expr::Path(_))) => {
                Err(wants_value(key, "path::to::turnbuckle"))
            }
            _ => Ok(()),
        }
    }
}

impl Parse for Given {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        // Any word, because `crate` is one that Rust keeps for itself.
        let key = input.call(Ident::parse_any).map_err(|error| {
            Error::new(
                error.span(),
                "a key is expected here, such as `name = \"…\"`",
            )
        })?;
        let value = match input.parse::<Option<Token![=]>>()? {
            Some(_) => Some(input.parse()?),
            None => None,
        };
        Ok(Self { key, value })
    }
}

fn unknown(key: &Ident, kind: Kind) -> String {
    let known: Vec<_> = kind
        .keys()
        .iter()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    let (noun, known) = (kind.noun(), known.join(", "));
    format!(
        "`#[{noun}]` has no key `{key}`, only {known}; whatever else the builder can do is done on the value it gives"
    )
}

fn wants_value(key: &Ident, example: &str) -> Error {
    Error::new(
        key.span(),
        format!("`{key}` needs a value: `{key} = {example}`"),
    )
}

/// The words of a literal, as an array.
fn words(value: &Expr) -> TokenStream {
    let text = string(value).map(LitStr::value).unwrap_or_default();
    let words = text.split_whitespace();
    quote!([#(#words),*])
}

/// Whether the builder would take the words of a text for scopes.
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
