//! `#[tool]`.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Error, Result, ext::IdentExt};

use crate::{
    expansion::{Derives, Expansion},
    function::check_async,
    gather::Gather,
};

pub(crate) fn expand(tool: &Expansion<'_>) -> Result<TokenStream> {
    let blocking = tool.options.has("blocking");
    let mut gather = Gather::default();
    gather.check(check_async(tool.kind, &tool.item.sig, blocking));
    gather.check(check_name(tool));
    gather.finish(())?;

    let library = tool.options.library();
    let new = format_ident!("{}", if blocking { "blocking" } else { "new" });
    let arguments =
        (tool.function.arguments().next().is_some()).then(|| tool.arguments(Derives::Schema));
    let (name, handler, calls) = (tool.name(), tool.handler(), tool.calls());
    let value = quote! {
        #arguments
        #library::Tool::#new(#name, #handler)#calls
    };
    Ok(tool.beside("tool", "Tool", &value))
}

/// Refuses a name that the builder would refuse, as far as it is known.
fn check_name(tool: &Expansion<'_>) -> Result<()> {
    let function = &tool.item.sig.ident;
    let (name, span, remedy) = match (tool.options.has("name"), tool.options.literal("name")) {
        (true, Some(name)) => (name.value(), name.span(), ""),
        (true, None) => return Ok(()),
        (false, _) => {
            let remedy = "; say another with `name = \"…\"`";
            (function.unraw().to_string(), function.span(), remedy)
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
        "`{name}` is no name for a tool: 1 to 128 letters, digits, `_`, `-` or `.`{remedy}"
    );
    Err(Error::new(span, message))
}
