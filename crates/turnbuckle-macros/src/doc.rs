//! Descriptions from doc comments.

use syn::{Attribute, Error, Expr, ExprLit, Lit, Meta, Result};

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
        lines.extend(text.value().split('\n').map(line));
    }
    let text = lines.join("\n").trim().to_owned();
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// Removes the space that follows the slashes.
fn line(line: &str) -> String {
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
