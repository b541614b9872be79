//! One argument: a parameter that becomes a field of the type that serde reads.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::{
    Attribute, Error, GenericArgument, LitStr, PatType, Path, PathArguments, Result, Type,
    ext::IdentExt,
};

use crate::{function::plain_name, kind::Kind};

/// Types that no text can be read as.
const NOT_TEXT: &[&str] = &[
    "bool", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    "f32", "f64",
];

/// A parameter that clients fill in.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Doc comment and attributes for serde and schemars.
    pub(crate) attributes: Vec<Attribute>,
}

impl Argument {
    pub(crate) fn read(kind: Kind, input: &PatType, attributes: Vec<Attribute>) -> Result<Self> {
        let noun = kind.noun();
        let Some(name) = plain_name(&input.pat) else {
            let message = "an argument needs a plain name, which clients will call it by";
            return Err(Error::new_spanned(&input.pat, message));
        };
        if let Some(cfg) = input.attrs.iter().find(|one| one.path().is_ident("cfg")) {
            let message = format!("a {noun} has the same arguments in every build");
            return Err(Error::new_spanned(cfg, message));
        }
        if let Some(message) = refusal(&input.ty) {
            return Err(Error::new_spanned(&input.ty, message));
        }
        let argument = Self {
            name: name.clone(),
            ty: (*input.ty).clone(),
            attributes,
        };
        match kind {
            Kind::Tool => Ok(argument),
            Kind::Prompt => argument.check_text("arguments of a prompt"),
            Kind::Resource => argument.check_text("variables of a URI"),
        }
    }

    /// The name that clients know: that of the parameter, or what `#[serde(rename = "…")]` says.
    pub(crate) fn known_as(&self) -> String {
        let mut name = self.name.unraw().to_string();
        self.each_of_serde(|key, value| {
            if let (true, Some(value)) = (key.is_ident("rename"), value) {
                name = value.value();
            }
        });
        name
    }

    /// Whether a client may leave it out.
    pub(crate) fn is_optional(&self) -> bool {
        let mut optional = inside_option(&self.ty).is_some();
        self.each_of_serde(|key, _| optional |= key.is_ident("default"));
        optional
    }

    /// Arguments of prompts and variables of templates are text. What serde is told about one is taken at its word.
    fn check_text(self, such: &str) -> Result<Self> {
        let ty = inside_option(&self.ty).unwrap_or(&self.ty);
        let told = self
            .attributes
            .iter()
            .any(|one| one.path().is_ident("serde"));
        if !told && last_segment(ty).is_some_and(|name| NOT_TEXT.iter().any(|one| name == one)) {
            let message = format!("{such} are text: take a `String` and parse it");
            return Err(Error::new_spanned(ty, message));
        }
        Ok(self)
    }

    /// Visits `key` and `key = "value"` in attributes for serde. What cannot be read is for serde to complain about.
    fn each_of_serde(&self, mut visit: impl FnMut(&Path, Option<LitStr>)) {
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

/// Whether a type is the context, by its name.
pub(crate) fn is_context(ty: &Type) -> bool {
    match ty {
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            last.ident == "Context" && matches!(last.arguments, PathArguments::None)
        }),
        _ => false,
    }
}

/// Why an argument cannot have this type, where its spelling alone tells.
fn refusal(ty: &Type) -> Option<&'static str> {
    match ty {
        Type::Reference(reference) if is_context(&reference.elem) => {
            Some("take the `Context` itself; it is cheap to clone")
        }
        Type::Reference(reference)
            if last_segment(&reference.elem).is_some_and(|one| one == "str") =>
        {
            Some("an argument is owned: take a `String`")
        }
        Type::Reference(_) => Some("an argument is owned: take the value itself"),
        Type::ImplTrait(_) => Some("clients are told what an argument is: name its type"),
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

impl ToTokens for Argument {
    /// Writes the field.
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        let Self {
            name,
            ty,
            attributes,
        } = self;
        tokens.extend(quote::quote!(#(#attributes)* #name: #ty));
    }
}
