//! `#[prompt]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::Result;

use crate::{
    expansion::{Derives, Expansion},
    function::check_async,
};

pub(crate) fn expand(prompt: &Expansion<'_>) -> Result<TokenStream> {
    check_async(prompt.kind, &prompt.item.sig, false)?;
    let library = prompt.options.library();
    let arguments =
        (prompt.function.arguments().next().is_some()).then(|| prompt.arguments(Derives::Schema));
    let (name, handler, calls) = (prompt.name(), prompt.handler(), prompt.calls());
    let value = quote! {
        #arguments
        #library::Prompt::new(#name, #handler)#calls
    };
    Ok(prompt.beside("prompt", "Prompt", &value))
}
