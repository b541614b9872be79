//! Builder methods named after the fields they set.

/// Writes one builder method per listed field.
///
/// `optional` fields are wrapped in `Some`, `plain` ones are replaced. Every method takes what converts
/// into the field's type, so that `tool.title("Add")` reads as it should.
macro_rules! setters {
    ($type:ident {
        $(optional { $($optional:ident : $inner:ty),* $(,)? })?
        $(plain { $($plain:ident : $value:ty),* $(,)? })?
    }) => {
        impl $type {
            $($(
                #[doc = concat!("Sets `", stringify!($optional), "`.")]
                #[must_use]
                pub fn $optional(mut self, value: impl Into<$inner>) -> Self {
                    self.$optional = Some(value.into());
                    self
                }
            )*)?
            $($(
                #[doc = concat!("Sets `", stringify!($plain), "`.")]
                #[must_use]
                pub fn $plain(mut self, value: impl Into<$value>) -> Self {
                    self.$plain = value.into();
                    self
                }
            )*)?
        }
    };
}

pub(super) use setters;
