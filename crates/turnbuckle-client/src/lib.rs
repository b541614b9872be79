//! A Model Context Protocol client for every server.

mod callbacks;
#[cfg(feature = "skills")]
mod skills;

pub use callbacks::{
    Consent, FormAnswer, FormError, FormRequest, IntoRoot, RootError, Roots, SampleRequest,
    VisitRequest,
};
#[cfg(feature = "skills")]
pub use skills::SkillMismatch;
