//! `#[resource]`: one resource, or all that a template describes.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Attribute, Error, LitStr, Result};

use crate::{
    argument::Argument,
    expansion::{Derives, Expansion},
    function::check_async,
    gather::Gather,
    uri::{self, Variable},
};

pub(crate) fn expand(resource: &Expansion<'_>) -> Result<TokenStream> {
    let Some(uri) = resource.options.literal("uri") else {
        let message = "a resource needs its address: `#[resource(uri = \"…\")]`";
        return Err(Error::new(Span::call_site(), message));
    };
    let variables = uri::variables(uri)?;
    let mut gather = Gather::default();
    gather.check(check_async(resource.kind, &resource.item.sig, false));
    for argument in resource.function.arguments() {
        gather.check(check_argument(argument, uri, &variables));
    }
    for variable in &variables {
        gather.check(check_variable(resource, uri, variable));
    }
    gather.finish(())?;
    Ok(if variables.is_empty() {
        fixed(resource, uri)
    } else {
        template(resource, uri)
    })
}

fn fixed(resource: &Expansion<'_>, uri: &LitStr) -> TokenStream {
    let library = resource.options.library();
    let (name, handler, calls) = (resource.name(), resource.handler(), resource.calls());
    let value = quote!(#library::Resource::new(#uri, #name, #handler)#calls);
    resource.beside("resource", "Resource", &value)
}

fn template(resource: &Expansion<'_>, uri: &LitStr) -> TokenStream {
    let library = resource.options.library();
    let variables = resource.arguments(Derives::Reading);
    let (name, calls) = (resource.name(), resource.calls());
    let handler = resource.handler_of_both();
    let value = quote! {
        #variables
        #library::ResourceTemplate::new(#uri, #name, #handler)#calls
    };
    resource.beside("template", "ResourceTemplate", &value)
}

fn check_argument(argument: &Argument, uri: &LitStr, variables: &[Variable]) -> Result<()> {
    let name = argument.known_as();
    let Some(variable) = variables.iter().find(|variable| variable.name == name) else {
        let message = format!("`{name}` is no variable of `{}`", uri.value());
        return Err(Error::new(argument.name.span(), message));
    };
    let of_schemars = |one: &&Attribute| one.path().is_ident("schemars");
    if let Some(attribute) = argument.attributes.iter().find(of_schemars) {
        let message = "clients are told no schema for the variables of a URI";
        return Err(Error::new_spanned(attribute, message));
    }
    if variable.may_be_missing && !argument.is_optional() {
        let message = format!("a URI may come without `{name}`: take an `Option`");
        return Err(Error::new_spanned(&argument.ty, message));
    }
    Ok(())
}

fn check_variable(resource: &Expansion<'_>, uri: &LitStr, variable: &Variable) -> Result<()> {
    let name = &variable.name;
    if resource
        .function
        .arguments()
        .any(|one| one.known_as() == *name)
    {
        return Ok(());
    }
    let message = format!("no parameter takes the variable `{name}`");
    Err(Error::new(uri.span(), message))
}
