//! The generated code: the function, and a companion type of the same name that creates the builder.
//!
//! The type is an enum without variants, so it only occupies the type namespace; the function keeps the name in the
//! value namespace.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Attribute, Error, Expr, Ident, ItemFn, LitStr, Path, Result, ReturnType, Type, ext::IdentExt,
    parse_quote, spanned::Spanned,
};

use crate::{
    ErrorCollector,
    function::{HandlerArgument, HandlerFunction, HandlerParameter, check_async},
    options::{AttributeOptions, MacroKind},
    uri::{self, UriVariable},
};

/// A checked function, with the options of its attribute.
pub(crate) struct MacroExpansion<'a> {
    pub(crate) kind: MacroKind,
    pub(crate) item: &'a ItemFn,
    pub(crate) function: &'a HandlerFunction,
    pub(crate) options: &'a AttributeOptions,
    /// The text of the doc comment.
    pub(crate) description: Option<String>,
}

/// The derives of the argument struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArgumentDerives {
    /// `Deserialize` and `JsonSchema`.
    Schema,
    /// `Deserialize` only, because clients do not need a schema.
    Deserialize,
}

impl MacroExpansion<'_> {
    /// Generates the companion type with the function `maker`, which returns the builder type `made`.
    pub(crate) fn companion_type(
        &self,
        maker: &str,
        made: &str,
        value: &TokenStream,
    ) -> TokenStream {
        let ItemFn {
            attrs, vis, sig, ..
        } = self.item;
        let name = &sig.ident;
        let cfgs = attrs.iter().filter(|one| one.path().is_ident("cfg"));
        let cfgs = quote!(#(#cfgs)*);
        let (maker, made) = (format_ident!("{maker}"), format_ident!("{made}"));
        let library = self.options.library();
        let noun = self.kind.noun();
        let about = format!("Creates the {noun} for the function of the same name.");
        let how = format!("Returns the {noun}, to be configured further or added to a server.");
        let check = self.check_result();
        quote! {
            #cfgs
            #[doc = #about]
            #[allow(non_camel_case_types)]
            #vis enum #name {}

            #cfgs
            impl #name {
                #[doc = #how]
                #vis fn #maker() -> #library::#made {
                    #check
                    #value
                }
            }
        }
    }

    /// Returns the name for clients.
    pub(crate) fn name(&self) -> Expr {
        match self.options.value("name") {
            Some(name) => name.clone(),
            None => {
                let name = self.item.sig.ident.unraw().to_string();
                parse_quote!(#name)
            }
        }
    }

    /// Returns the builder calls: the description, then the options.
    pub(crate) fn calls(&self) -> TokenStream {
        let description = (self.description.as_ref()).map(|text| quote!(.description(#text)));
        let calls = self.options.calls();
        quote!(#description #calls)
    }

    /// Generates the struct of the arguments.
    pub(crate) fn arguments(&self, derives: ArgumentDerives) -> TokenStream {
        let library = self.options.library();
        let serde = text(&quote!(#library::__private::serde));
        let schemars = text(&quote!(#library::__private::schemars));
        let schema = (derives == ArgumentDerives::Schema).then(|| {
            quote! {
                #[derive(#library::__private::schemars::JsonSchema)]
                #[schemars(crate = #schemars)]
            }
        });
        let attributes = &self.function.attributes;
        let fields = self.function.arguments();
        // The struct name must not collide with the type of a parameter; the renamed one may be visible to a model.
        quote! {
            #[derive(#library::__private::serde::Deserialize)]
            #[serde(crate = #serde, rename = "arguments")]
            #schema
            #(#attributes)*
            struct __Arguments { #(#fields,)* }
        }
    }

    /// Returns the handler for the builder: a closure with arguments as one value, the context, both or neither.
    pub(crate) fn handler(&self) -> TokenStream {
        let name = &self.item.sig.ident;
        // Hygienic names, because the function may be named like one of its parameters.
        let (arguments, context) = (local("arguments"), local("cx"));
        let pass = self
            .function
            .parameters
            .iter()
            .map(|parameter| match parameter {
                HandlerParameter::Context => quote!(#context),
                HandlerParameter::Argument(argument) => {
                    let field = &argument.name;
                    quote!(#arguments.#field)
                }
            });
        let library = self.options.library();
        let has_arguments = self.function.arguments().next().is_some();
        let arguments = has_arguments.then(|| quote!(#arguments: __Arguments,));
        let cx = (self.function.takes_context()).then(|| quote!(#context: #library::Context));
        let call = quote!(#name(#(#pass),*));
        let convert = self.convert_error();
        if self.item.sig.asyncness.is_some() {
            quote!(move |#arguments #cx| async move { #convert(#call.await) })
        } else {
            quote!(move |#arguments #cx| #convert(#call))
        }
    }

    /// Returns the function that converts the error of the handler to that of the builder.
    fn convert_error(&self) -> TokenStream {
        let library = self.options.library();
        let error = format_ident!("{}", self.kind.error());
        quote!(#library::__private::convert_error::<_, _, #library::#error>)
    }

    /// Generates a check that reports a return type other than `Result` at its position.
    fn check_result(&self) -> Option<TokenStream> {
        let ReturnType::Type(_, output) = &self.item.sig.output else {
            return None;
        };
        let library: Path = self.options.library();
        let span = output.span();
        (!is_opaque(output))
            .then(|| quote_spanned!(span=> #library::__private::assert_result::<#output>();))
    }
}

fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

fn text(path: &TokenStream) -> String {
    path.to_string().replace(' ', "")
}

/// Returns whether a type contains `impl Trait`, which cannot be repeated in the check.
fn is_opaque(ty: &Type) -> bool {
    let text = quote!(#ty).to_string();
    // A type name that ends with `impl` is skipped too.
    text.split(' ').any(|word| word.ends_with("impl"))
}

pub(crate) fn expand_tool(tool: &MacroExpansion<'_>) -> Result<TokenStream> {
    let blocking = tool.options.has("blocking");
    let mut errors = ErrorCollector::default();
    errors.check(check_async(tool.kind, &tool.item.sig, blocking));
    errors.check(check_name(tool));
    errors.finish(())?;

    let library = tool.options.library();
    let new = format_ident!("{}", if blocking { "blocking" } else { "new" });
    let arguments = (tool.function.arguments().next().is_some())
        .then(|| tool.arguments(ArgumentDerives::Schema));
    let (name, handler, calls) = (tool.name(), tool.handler(), tool.calls());
    let value = quote! {
        #arguments
        #library::Tool::#new(#name, #handler)#calls
    };
    Ok(tool.companion_type("tool", "Tool", &value))
}

/// Rejects names that the builder would reject, if the name is a literal.
fn check_name(tool: &MacroExpansion<'_>) -> Result<()> {
    let function = &tool.item.sig.ident;
    let (name, span, hint) = match (tool.options.has("name"), tool.options.literal("name")) {
        (true, Some(name)) => (name.value(), name.span(), ""),
        (true, None) => return Ok(()),
        (false, _) => {
            let hint = "; set another name with `name = \"…\"`";
            (function.unraw().to_string(), function.span(), hint)
        }
    };
    let good = (1..=128).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if good {
        return Ok(());
    }
    let message = format!(
        "`{name}` is not a valid tool name: use 1 to 128 letters, digits, `_`, `-` or `.`{hint}"
    );
    Err(Error::new(span, message))
}

pub(crate) fn expand_prompt(prompt: &MacroExpansion<'_>) -> Result<TokenStream> {
    check_async(prompt.kind, &prompt.item.sig, false)?;
    let library = prompt.options.library();
    let arguments = (prompt.function.arguments().next().is_some())
        .then(|| prompt.arguments(ArgumentDerives::Schema));
    let (name, handler, calls) = (prompt.name(), prompt.handler(), prompt.calls());
    let value = quote! {
        #arguments
        #library::Prompt::new(#name, #handler)#calls
    };
    Ok(prompt.companion_type("prompt", "Prompt", &value))
}

pub(crate) fn expand_resource(resource: &MacroExpansion<'_>) -> Result<TokenStream> {
    let Some(uri) = resource.options.literal("uri") else {
        let message = "a resource needs a URI: `#[resource(uri = \"…\")]`";
        return Err(Error::new(Span::call_site(), message));
    };
    let variables = uri::variables(uri)?;
    let mut errors = ErrorCollector::default();
    errors.check(check_async(resource.kind, &resource.item.sig, false));
    for argument in resource.function.arguments() {
        errors.check(check_argument(argument, uri, &variables));
    }
    for variable in &variables {
        errors.check(check_variable(resource, uri, variable));
    }
    errors.finish(())?;
    Ok(if variables.is_empty() {
        fixed(resource, uri)
    } else {
        template(resource, uri)
    })
}

fn fixed(resource: &MacroExpansion<'_>, uri: &LitStr) -> TokenStream {
    let library = resource.options.library();
    let (name, handler, calls) = (resource.name(), resource.handler(), resource.calls());
    let value = quote!(#library::Resource::new(#uri, #name, #handler)#calls);
    resource.companion_type("resource", "Resource", &value)
}

fn template(resource: &MacroExpansion<'_>, uri: &LitStr) -> TokenStream {
    let library = resource.options.library();
    let variables = resource.arguments(ArgumentDerives::Deserialize);
    let (name, calls) = (resource.name(), resource.calls());
    let handler = resource.handler();
    let value = quote! {
        #variables
        #library::ResourceTemplate::new(#uri, #name, #handler)#calls
    };
    resource.companion_type("template", "ResourceTemplate", &value)
}

fn check_argument(
    argument: &HandlerArgument,
    uri: &LitStr,
    variables: &[UriVariable],
) -> Result<()> {
    let name = argument.wire_name();
    let Some(variable) = variables.iter().find(|variable| variable.name == name) else {
        let message = format!("`{name}` is not a variable of `{}`", uri.value());
        return Err(Error::new(argument.name.span(), message));
    };
    let of_schemars = |one: &&Attribute| one.path().is_ident("schemars");
    if let Some(attribute) = argument.attributes.iter().find(of_schemars) {
        let message = "variables of a URI do not have a schema, remove this attribute";
        return Err(Error::new_spanned(attribute, message));
    }
    if variable.is_optional && !argument.is_optional() {
        let message = format!("`{name}` is optional in the URI: use an `Option`");
        return Err(Error::new_spanned(&argument.ty, message));
    }
    Ok(())
}

fn check_variable(
    resource: &MacroExpansion<'_>,
    uri: &LitStr,
    variable: &UriVariable,
) -> Result<()> {
    let name = &variable.name;
    if resource
        .function
        .arguments()
        .any(|one| one.wire_name() == *name)
    {
        return Ok(());
    }
    let message = format!("no parameter for the variable `{name}`");
    Err(Error::new(uri.span(), message))
}
