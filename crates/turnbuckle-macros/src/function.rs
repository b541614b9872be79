//! Parses and checks the annotated function and its doc comment.

use proc_macro2::{Ident, Span};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Error, Expr, ExprLit, FnArg, GenericArgument, ItemFn, Lit, LitStr, Meta, Pat,
    PatType, Path, PathArguments, Receiver, Result, ReturnType, Signature, Type, ext::IdentExt,
    spanned::Spanned,
};

use crate::{ErrorCollector, options::MacroKind};

/// A parsed function.
pub(crate) struct HandlerFunction {
    pub(crate) parameters: Vec<HandlerParameter>,
    /// Attributes of the argument struct.
    pub(crate) attributes: Vec<Attribute>,
}

/// A parameter, in the order of the function.
pub(crate) enum HandlerParameter {
    Context,
    Argument(Box<HandlerArgument>),
}

impl HandlerFunction {
    /// Parses a function without its serde and schemars attributes.
    pub(crate) fn read(
        kind: MacroKind,
        item: &ItemFn,
        stripped: StrippedAttributes,
    ) -> Result<Self> {
        let mut errors = ErrorCollector::default();
        errors.check(check_shape(kind, &item.sig));
        errors.check(check_return(kind, &item.sig));
        let mut parameters = Vec::new();
        for (input, attributes) in item.sig.inputs.iter().zip(stripped.parameters) {
            parameters.extend(errors.check(parameter(kind, input, attributes)));
        }
        errors.check(check_contexts(&item.sig));
        errors.check(check_attributes(&item.sig, &stripped.function));
        errors.finish(Self {
            parameters,
            attributes: stripped.function,
        })
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &HandlerArgument> {
        self.parameters
            .iter()
            .filter_map(|parameter| match parameter {
                HandlerParameter::Context => None,
                HandlerParameter::Argument(argument) => Some(&**argument),
            })
    }

    pub(crate) fn takes_context(&self) -> bool {
        self.parameters
            .iter()
            .any(|parameter| matches!(parameter, HandlerParameter::Context))
    }
}

/// Attributes that apply to the arguments and are removed from the function.
pub(crate) struct StrippedAttributes {
    function: Vec<Attribute>,
    /// One list per parameter.
    parameters: Vec<Vec<Attribute>>,
}

impl StrippedAttributes {
    /// Removes the attributes, so that the function compiles even if there are other errors.
    pub(crate) fn strip(item: &mut ItemFn) -> Self {
        let about_types = ["serde", "schemars"];
        let about_fields = ["serde", "schemars", "doc"];
        let function = take(&mut item.attrs, &about_types);
        let parameters = item.sig.inputs.iter_mut().map(|input| match input {
            FnArg::Receiver(Receiver { attrs, .. }) | FnArg::Typed(PatType { attrs, .. }) => {
                take(attrs, &about_fields)
            }
        });
        Self {
            function,
            parameters: parameters.collect(),
        }
    }
}

fn take(attributes: &mut Vec<Attribute>, names: &[&str]) -> Vec<Attribute> {
    attributes
        .extract_if(.., |attribute| {
            names.iter().any(|name| attribute.path().is_ident(name))
        })
        .collect()
}

fn check_shape(kind: MacroKind, signature: &Signature) -> Result<()> {
    let noun = kind.noun();
    let generics = &signature.generics;
    if let Some(receiver) = signature.receiver() {
        return Err(Error::new_spanned(
            receiver,
            format!(
                "a {noun} must be a free function; to share state, pass a closure to the builder"
            ),
        ));
    }
    if !generics.params.is_empty() || generics.where_clause.is_some() {
        let span = match &generics.where_clause {
            Some(clause) if generics.params.is_empty() => clause.span(),
            _ => generics.params.span(),
        };
        return Err(Error::new(
            span,
            format!("a {noun} cannot be generic: its schema must be known at compile time"),
        ));
    }
    let unsupported_qualifiers = [
        signature.unsafety.map(|word| word.span),
        signature.constness.map(|word| word.span),
        signature.abi.as_ref().map(Spanned::span),
        signature.variadic.as_ref().map(Spanned::span),
    ];
    match unsupported_qualifiers.into_iter().flatten().next() {
        Some(span) => Err(Error::new(
            span,
            format!("a {noun} cannot be `unsafe`, `const`, `extern` or variadic"),
        )),
        None => Ok(()),
    }
}

fn check_return(kind: MacroKind, signature: &Signature) -> Result<()> {
    let span: Span = match &signature.output {
        ReturnType::Default => signature.ident.span(),
        ReturnType::Type(_, output) => match &**output {
            // Only the compiler knows if a named type is a `Result`.
            Type::Path(_) | Type::Macro(_) | Type::Group(_) | Type::Paren(_) => return Ok(()),
            other => other.span(),
        },
    };
    let error = match kind {
        MacroKind::Tool => "ToolError",
        MacroKind::Prompt | MacroKind::Resource => "RequestError",
    };
    let noun = kind.noun();
    Err(Error::new(
        span,
        format!("a {noun} must return a `Result`, for example `Result<String, {error}>`"),
    ))
}

fn parameter(
    kind: MacroKind,
    input: &FnArg,
    attributes: Vec<Attribute>,
) -> Result<HandlerParameter> {
    match input {
        // Reported by `check_shape`.
        FnArg::Receiver(_) => Ok(HandlerParameter::Context),
        FnArg::Typed(input) if is_context(&input.ty) => match attributes.first() {
            Some(attribute) => Err(Error::new_spanned(
                attribute,
                "the context is not an argument, remove this attribute",
            )),
            None => Ok(HandlerParameter::Context),
        },
        FnArg::Typed(input) => {
            let argument = HandlerArgument::read(kind, input, attributes)?;
            Ok(HandlerParameter::Argument(Box::new(argument)))
        }
    }
}

fn check_contexts(signature: &Signature) -> Result<()> {
    match signature.inputs.iter().filter(is_context_input).nth(1) {
        Some(second) => Err(Error::new_spanned(
            second,
            "only one `Context` parameter is allowed",
        )),
        None => Ok(()),
    }
}

fn check_attributes(signature: &Signature, attributes: &[Attribute]) -> Result<()> {
    let has_arguments = signature
        .inputs
        .iter()
        .any(|input| !is_context_input(&input));
    match attributes.first() {
        Some(attribute) if !has_arguments => Err(Error::new_spanned(
            attribute,
            "this attribute applies to arguments, but the function has none",
        )),
        _ => Ok(()),
    }
}

fn is_context_input(input: &&FnArg) -> bool {
    matches!(input, FnArg::Typed(input) if is_context(&input.ty))
}

/// Checks that the function is `async` unless it is blocking.
pub(crate) fn check_async(kind: MacroKind, signature: &Signature, blocking: bool) -> Result<()> {
    let noun = kind.noun();
    match (signature.asyncness, blocking, kind) {
        (Some(word), true, _) => Err(Error::new(
            word.span,
            format!("a blocking {noun} must not be `async`; remove one of the two"),
        )),
        (None, false, MacroKind::Tool) => Err(Error::new(
            signature.fn_token.span,
            "a tool must be an `async fn`; for a blocking function use `#[tool(blocking)]`",
        )),
        (None, false, _) => Err(Error::new(
            signature.fn_token.span,
            format!("a {noun} must be an `async fn`"),
        )),
        _ => Ok(()),
    }
}

/// Returns the name of a parameter, if it can be the name of a field.
pub(crate) fn plain_name(pattern: &Pat) -> Option<&syn::Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(&name.ident),
        _ => None,
    }
}

/// Types that cannot be deserialized from text.
const NON_TEXT_TYPES: &[&str] = &[
    "bool", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    "f32", "f64",
];

/// An argument that clients provide.
pub(crate) struct HandlerArgument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Doc comment and attributes for serde and schemars.
    pub(crate) attributes: Vec<Attribute>,
}

impl HandlerArgument {
    pub(crate) fn read(
        kind: MacroKind,
        input: &PatType,
        attributes: Vec<Attribute>,
    ) -> Result<Self> {
        let noun = kind.noun();
        let Some(name) = plain_name(&input.pat) else {
            let message =
                "an argument must be a plain identifier, which becomes its name for clients";
            return Err(Error::new_spanned(&input.pat, message));
        };
        if let Some(cfg) = input.attrs.iter().find(|one| one.path().is_ident("cfg")) {
            let message = format!("`cfg` is not allowed on arguments of a {noun}");
            return Err(Error::new_spanned(cfg, message));
        }
        if let Some(message) = unsupported(&input.ty) {
            return Err(Error::new_spanned(&input.ty, message));
        }
        let argument = Self {
            name: name.clone(),
            ty: (*input.ty).clone(),
            attributes,
        };
        match kind {
            MacroKind::Tool => Ok(argument),
            MacroKind::Prompt => argument.check_text("arguments of a prompt"),
            MacroKind::Resource => argument.check_text("variables of a URI"),
        }
    }

    /// Returns the name for clients: that of the parameter, or of `#[serde(rename = "…")]`.
    pub(crate) fn wire_name(&self) -> String {
        let mut name = self.name.unraw().to_string();
        self.for_each_serde_key(|key, value| {
            if let (true, Some(value)) = (key.is_ident("rename"), value) {
                name = value.value();
            }
        });
        name
    }

    /// Returns whether a client may omit it.
    pub(crate) fn is_optional(&self) -> bool {
        let mut optional = inside_option(&self.ty).is_some();
        self.for_each_serde_key(|key, _| optional |= key.is_ident("default"));
        optional
    }

    /// Checks that the type is text, as in prompts and templates. A serde attribute disables the check.
    fn check_text(self, such: &str) -> Result<Self> {
        let ty = inside_option(&self.ty).unwrap_or(&self.ty);
        let has_serde_attribute = self
            .attributes
            .iter()
            .any(|one| one.path().is_ident("serde"));
        if !has_serde_attribute
            && last_segment(ty).is_some_and(|name| NON_TEXT_TYPES.iter().any(|one| name == one))
        {
            let message = format!("{such} must be text: use a `String` and parse it");
            return Err(Error::new_spanned(ty, message));
        }
        Ok(self)
    }

    /// Calls `visit` for `key` and `key = "value"` in serde attributes. Serde reports invalid attributes.
    fn for_each_serde_key(&self, mut visit: impl FnMut(&Path, Option<LitStr>)) {
        let of_serde = |one: &&Attribute| one.path().is_ident("serde");
        for attribute in self.attributes.iter().filter(of_serde) {
            let _ = attribute.parse_nested_meta(|meta| {
                let value = match meta.value() {
                    Ok(value) => Some(value.parse()?),
                    Err(_) => None,
                };
                visit(&meta.path, value);
                Ok(())
            });
        }
    }
}

/// Returns whether a type is the context, by its name.
pub(crate) fn is_context(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            last.ident == "Context" && matches!(last.arguments, PathArguments::None)
        }),
        _ => false,
    }
}

/// Returns the reason why an argument cannot have this type, as far as the syntax shows.
fn unsupported(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Reference(reference) if is_context(&reference.elem) => {
            Some("use `Context` by value; it is cheap to clone")
        }
        Type::Reference(reference)
            if last_segment(&reference.elem).is_some_and(|one| one == "str") =>
        {
            Some("arguments must be owned: use a `String`")
        }
        Type::Reference(_) => Some("arguments must be owned: use the type without a reference"),
        Type::ImplTrait(_) => Some("arguments need a concrete type for their schema"),
        _ => None,
    }
}

fn inside_option(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    match &last.arguments {
        PathArguments::AngleBracketed(inside) if last.ident == "Option" => {
            inside.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            })
        }
        _ => None,
    }
}

fn last_segment(ty: &Type) -> Option<&Ident> {
    match ty {
        Type::Path(path) => path.path.segments.last().map(|last| &last.ident),
        _ => None,
    }
}

impl ToTokens for HandlerArgument {
    /// Generates the field.
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        let Self {
            name,
            ty,
            attributes,
        } = self;
        tokens.extend(quote!(#(#attributes)* #name: #ty));
    }
}

/// Returns the whole doc comment, with its line breaks.
pub(crate) fn description(attributes: &[Attribute]) -> Result<Option<String>> {
    let mut lines = Vec::new();
    for attribute in attributes {
        let Meta::NameValue(doc) = &attribute.meta else {
            continue;
        };
        if !doc.path.is_ident("doc") {
            continue;
        }
        let Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) = &doc.value
        else {
            let message = "this doc text is not available to the macro; use `description = …`";
            return Err(Error::new_spanned(&doc.value, message));
        };
        lines.extend(text.value().split('\n').map(strip_space));
    }
    let text = lines.join("\n").trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Removes the space that follows the slashes.
fn strip_space(line: &str) -> String {
    line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_quote};

    use super::*;

    #[test]
    fn paragraphs_lists_and_indents_are_kept() {
        let function: ItemFn = parse_quote! {
            /// Forecast for one city.
            ///
            /// - today
            ///   and tomorrow
            ///
            #[doc(hidden)]
            fn forecast() {}
        };

        let text = description(&function.attrs).unwrap().unwrap();

        assert_eq!(text, "Forecast for one city.\n\n- today\n  and tomorrow");
    }

    #[test]
    fn no_comment_is_no_description() {
        let function: ItemFn = parse_quote! {
            ///
            fn forecast() {}
        };

        assert_eq!(description(&function.attrs).unwrap(), None);
    }
}
