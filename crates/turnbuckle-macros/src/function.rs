//! The function under an attribute: what it takes, and whether it can become what it is to become.

use proc_macro2::Span;
use syn::{
    Attribute, Error, FnArg, ItemFn, Pat, PatType, Receiver, Result, ReturnType, Signature, Type,
    spanned::Spanned,
};

use crate::{
    argument::{Argument, is_context},
    gather::Gather,
    kind::Kind,
};

/// What is known about a function.
pub(crate) struct Function {
    pub(crate) parameters: Vec<Parameter>,
    /// Attributes of the type that holds the arguments.
    pub(crate) attributes: Vec<Attribute>,
}

/// One parameter, in the function's order.
pub(crate) enum Parameter {
    Context,
    Argument(Box<Argument>),
}

impl Function {
    /// Reads a function whose attributes for serde and schemars were taken off.
    pub(crate) fn read(kind: Kind, item: &ItemFn, taken: Taken) -> Result<Self> {
        let mut gather = Gather::default();
        gather.check(check_shape(kind, &item.sig));
        gather.check(check_return(kind, &item.sig));
        let mut parameters = Vec::new();
        for (input, attributes) in item.sig.inputs.iter().zip(taken.parameters) {
            parameters.extend(gather.check(parameter(kind, input, attributes)));
        }
        gather.check(check_contexts(&item.sig));
        gather.check(check_attributes(&item.sig, &taken.function));
        gather.finish(Self {
            parameters,
            attributes: taken.function,
        })
    }

    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Argument> {
        self.parameters
            .iter()
            .filter_map(|parameter| match parameter {
                Parameter::Context => None,
                Parameter::Argument(argument) => Some(&**argument),
            })
    }

    pub(crate) fn takes_context(&self) -> bool {
        self.parameters
            .iter()
            .any(|parameter| matches!(parameter, Parameter::Context))
    }
}

/// Attributes that a function cannot keep, because they are about its arguments.
pub(crate) struct Taken {
    function: Vec<Attribute>,
    /// One list for each parameter.
    parameters: Vec<Vec<Attribute>>,
}

impl Taken {
    /// Takes them off, which leaves a function that compiles whatever else is wrong.
    pub(crate) fn off(item: &mut ItemFn) -> Self {
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

fn check_shape(kind: Kind, signature: &Signature) -> Result<()> {
    let noun = kind.noun();
    let generics = &signature.generics;
    if let Some(receiver) = signature.receiver() {
        return Err(Error::new_spanned(
            receiver,
            format!(
                "a {noun} is a free function; to share state, give the builder a closure that captures it"
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
            format!("a {noun} cannot be generic: clients are told what it takes before it runs"),
        ));
    }
    let strange = [
        signature.unsafety.map(|word| word.span),
        signature.constness.map(|word| word.span),
        signature.abi.as_ref().map(Spanned::span),
        signature.variadic.as_ref().map(Spanned::span),
    ];
    match strange.into_iter().flatten().next() {
        Some(span) => Err(Error::new(
            span,
            format!("a {noun} is a plain function of Rust"),
        )),
        None => Ok(()),
    }
}

fn check_return(kind: Kind, signature: &Signature) -> Result<()> {
    let span: Span = match &signature.output {
        ReturnType::Default => signature.ident.span(),
        ReturnType::Type(_, output) => match &**output {
            // Whether a named type is a `Result`, possibly under another name, is for the compiler to say.
            Type::Path(_) | Type::Macro(_) | Type::Group(_) | Type::Paren(_) => return Ok(()),
            other => other.span(),
        },
    };
    let error = match kind {
        Kind::Tool => "ToolError",
        Kind::Prompt | Kind::Resource => "RequestError",
    };
    let noun = kind.noun();
    Err(Error::new(
        span,
        format!("a {noun} returns a `Result`, for example `Result<String, {error}>`"),
    ))
}

fn parameter(kind: Kind, input: &FnArg, attributes: Vec<Attribute>) -> Result<Parameter> {
    match input {
        // Its own mistake, which is found with the shape.
        FnArg::Receiver(_) => Ok(Parameter::Context),
        FnArg::Typed(input) if is_context(&input.ty) => match attributes.first() {
            Some(attribute) => Err(Error::new_spanned(
                attribute,
                "the context is no argument: nothing is said about it to the client",
            )),
            None => Ok(Parameter::Context),
        },
        FnArg::Typed(input) => {
            let argument = Argument::read(kind, input, attributes)?;
            Ok(Parameter::Argument(Box::new(argument)))
        }
    }
}

fn check_contexts(signature: &Signature) -> Result<()> {
    match signature.inputs.iter().filter(is_context_input).nth(1) {
        Some(second) => Err(Error::new_spanned(
            second,
            "there is one context; take it once",
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
            "this is about arguments, and there are none",
        )),
        _ => Ok(()),
    }
}

fn is_context_input(input: &&FnArg) -> bool {
    matches!(input, FnArg::Typed(input) if is_context(&input.ty))
}

/// Says where a function is asynchronous and should not be, or the other way round.
pub(crate) fn check_async(kind: Kind, signature: &Signature, blocking: bool) -> Result<()> {
    let noun = kind.noun();
    match (signature.asyncness, blocking, kind) {
        (Some(word), true, _) => Err(Error::new(
            word.span,
            format!("a blocking {noun} is not `async`; leave out one of the two"),
        )),
        (None, false, Kind::Tool) => Err(Error::new(
            signature.fn_token.span,
            "a tool is an `async fn`; one that waits without yielding says `#[tool(blocking)]`",
        )),
        (None, false, _) => Err(Error::new(
            signature.fn_token.span,
            format!("a {noun} is an `async fn`"),
        )),
        _ => Ok(()),
    }
}

/// Whether a parameter has a name that a field can have.
pub(crate) fn plain_name(pattern: &Pat) -> Option<&syn::Ident> {
    match pattern {
        Pat::Ident(name) if name.by_ref.is_none() && name.subpat.is_none() => Some(&name.ident),
        _ => None,
    }
}
