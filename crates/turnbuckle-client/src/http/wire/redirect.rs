//! Which redirects are followed: few, and never to a stranger.

use ::http::{Method, StatusCode, header::LOCATION};

use super::{HttpError, Response};
use crate::http::url::Url;

/// The redirects of one request.
pub(crate) struct Redirects {
    limit: usize,
    followed: usize,
}

impl Redirects {
    /// Follows so many, and no more.
    pub(crate) fn up_to(limit: usize) -> Self {
        Self { limit, followed: 0 }
    }

    /// Says where to go on.
    pub(crate) fn follow(
        &mut self,
        method: &Method,
        response: &Response,
    ) -> Result<Url, HttpError> {
        let location = response.header(LOCATION).unwrap_or_default();
        let refused = || HttpError::Redirect {
            status: response.status().as_u16(),
            location: super::response::clean(location.as_bytes()),
        };
        if location.is_empty() || !keeps_method(method, response.status()) {
            return Err(refused());
        }
        let at = response.url();
        let next = at.resolve(location).map_err(|_| refused())?;
        if next.origin() != at.origin() {
            return Err(HttpError::OtherOrigin {
                origin: next.origin().to_string(),
            });
        }
        if self.followed == self.limit {
            return Err(HttpError::TooManyRedirects { limit: self.limit });
        }
        self.followed += 1;
        Ok(next)
    }
}

/// Says whether the redirected request is the same one: other statuses may turn POST into GET.
fn keeps_method(method: &Method, status: StatusCode) -> bool {
    match status.as_u16() {
        307 | 308 => true,
        301..=303 => *method == Method::GET,
        _ => false,
    }
}
