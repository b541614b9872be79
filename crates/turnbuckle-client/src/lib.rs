//! A Model Context Protocol client for every server.

mod callbacks;

pub use callbacks::{
    Consent, FormAnswer, FormError, FormRequest, IntoRoot, RootError, Roots, SampleRequest,
    VisitRequest,
};
