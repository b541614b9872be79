//! Servers that are reached by HTTP.

mod headers;
mod url;
mod wire;

pub use self::{headers::BadHeader, url::BadUrl, wire::HttpError};
