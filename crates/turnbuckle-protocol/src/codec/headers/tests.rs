//! Header values, marks and media types.

mod arguments;
mod marks;
mod media;
mod values;
