//! What an attribute leaves behind: the function, and beside it a type of the same name that makes the builder's value.
//!
//! The type has no value, so it takes its name only among types and modules; the function keeps it among values.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{
    Expr, Ident, ItemFn, Path, ReturnType, Type, ext::IdentExt, parse_quote, spanned::Spanned,
};

use crate::{
    function::{Function, Parameter},
    kind::Kind,
    options::Options,
};

/// A function that has passed all checks, with what was said about it.
pub(crate) struct Expansion<'a> {
    pub(crate) kind: Kind,
    pub(crate) item: &'a ItemFn,
    pub(crate) function: &'a Function,
    pub(crate) options: &'a Options,
    /// What the doc comment says.
    pub(crate) description: Option<String>,
}

/// What the types of arguments derive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Derives {
    /// Clients are told a schema.
    Schema,
    /// Clients know the names from elsewhere.
    Reading,
}

impl Expansion<'_> {
    /// Writes the type with the function `maker`, which returns the builder's value of the library's type `made`.
    pub(crate) fn beside(&self, maker: &str, made: &str, value: &TokenStream) -> TokenStream {
        let ItemFn {
            attrs, vis, sig, ..
        } = self.item;
        let name = &sig.ident;
        let switches = attrs.iter().filter(|one| one.path().is_ident("cfg"));
        let switches = quote!(#(#switches)*);
        let (maker, made) = (format_ident!("{maker}"), format_ident!("{made}"));
        let library = self.options.library();
        let noun = self.kind.noun();
        let about = format!("Makes a {noun} of the function of the same name.");
        let how = format!("Returns the {noun}, ready to be changed further or served.");
        let check = self.check_result();
        quote! {
            #switches
            #[doc = #about]
            #[allow(non_camel_case_types)]
            #vis enum #name {}

            #switches
            impl #name {
                #[doc = #how]
                #vis fn #maker() -> #library::#made {
                    #check
                    #value
                }
            }
        }
    }

    /// The name that clients know.
    pub(crate) fn name(&self) -> Expr {
        match self.options.value("name") {
            Some(name) => name.clone(),
            None => {
                let name = self.item.sig.ident.unraw().to_string();
                parse_quote!(#name)
            }
        }
    }

    /// The calls on the builder: the description, then what the keys say.
    pub(crate) fn calls(&self) -> TokenStream {
        let description = (self.description.as_ref()).map(|text| quote!(.description(#text)));
        let calls = self.options.calls();
        quote!(#description #calls)
    }

    /// The type that holds the arguments.
    pub(crate) fn arguments(&self, derives: Derives) -> TokenStream {
        let library = self.options.library();
        let serde = text(&quote!(#library::expansion::serde));
        let schemars = text(&quote!(#library::expansion::schemars));
        let schema = (derives == Derives::Schema).then(|| {
            quote! {
                #[derive(#library::expansion::schemars::JsonSchema)]
                #[schemars(crate = #schemars)]
            }
        });
        let attributes = &self.function.attributes;
        let fields = self.function.arguments();
        // The type's own name must not be one that a parameter's type has; what a model may read is the other one.
        quote! {
            #[derive(#library::expansion::serde::Deserialize)]
            #[serde(crate = #serde, rename = "arguments")]
            #schema
            #(#attributes)*
            struct __Arguments { #(#fields,)* }
        }
    }

    /// The function as the builder takes it: of the arguments in one value, the context, both or nothing.
    pub(crate) fn handler(&self) -> TokenStream {
        let name = &self.item.sig.ident;
        if self.function.arguments().next().is_none() {
            return quote!(#name);
        }
        let cx = self.function.takes_context().then(|| self.context());
        self.closure(cx.as_ref())
    }

    /// A closure of the arguments and the context, whether the function looks at the latter or not.
    pub(crate) fn handler_of_both(&self) -> TokenStream {
        self.closure(Some(&self.context()))
    }

    fn context(&self) -> TokenStream {
        let library = self.options.library();
        let cx = local("_cx");
        quote!(#cx: #library::Context)
    }

    fn closure(&self, cx: Option<&TokenStream>) -> TokenStream {
        let name = &self.item.sig.ident;
        // Names of this macro alone: a function may well be called like one of its parameters.
        let (arguments, context) = (local("arguments"), local("_cx"));
        let pass = self
            .function
            .parameters
            .iter()
            .map(|parameter| match parameter {
                Parameter::Context => quote!(#context),
                Parameter::Argument(argument) => {
                    let field = &argument.name;
                    quote!(#arguments.#field)
                }
            });
        quote!(|#arguments: __Arguments, #cx| #name(#(#pass),*))
    }

    /// Lets the compiler say at the right place that a return type is no `Result`.
    fn check_result(&self) -> Option<TokenStream> {
        let ReturnType::Type(_, output) = &self.item.sig.output else {
            return None;
        };
        let library: Path = self.options.library();
        let span = output.span();
        (!is_opaque(output))
            .then(|| quote_spanned!(span=> #library::expansion::returns::<#output>();))
    }
}

fn local(name: &str) -> Ident {
    Ident::new(name, Span::mixed_site())
}

fn text(path: &TokenStream) -> String {
    path.to_string().replace(' ', "")
}

/// Whether a type has an `impl Trait` in it, which can be written nowhere else.
fn is_opaque(ty: &Type) -> bool {
    let text = quote!(#ty).to_string();
    // A name with this ending is taken for it too, and goes without the check.
    text.split(' ').any(|word| word.ends_with("impl"))
}
