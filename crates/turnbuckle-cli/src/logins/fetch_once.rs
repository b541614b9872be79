//! Metadata that is asked for once per login, however many steps of it need it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use turnbuckle_auth::fetch::{Fetch, FetchError, Method, Request, Response};
use turnbuckle_client::http::Fetcher;
use turnbuckle_protocol::guard::BoxFuture;

/// Fetches, and remembers what was answered at well-known places. For the time of one login only: metadata changes.
pub(super) struct FetchOnce {
    fetcher: Arc<Fetcher>,
    answers: Mutex<HashMap<String, Response>>,
}

impl FetchOnce {
    pub(super) fn new(fetcher: Arc<Fetcher>) -> Self {
        Self {
            fetcher,
            answers: Mutex::default(),
        }
    }

    fn answers(&self) -> MutexGuard<'_, HashMap<String, Response>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch for FetchOnce {
    fn fetch(&self, request: Request) -> BoxFuture<'_, Result<Response, FetchError>> {
        Box::pin(async move {
            if request.method != Method::Get || !request.url.contains("/.well-known/") {
                return self.fetcher.fetch(request).await;
            }
            let known = self.answers().get(&request.url).cloned();
            if let Some(answer) = known {
                return Ok(answer);
            }
            let url = request.url.clone();
            let answer = self.fetcher.fetch(request).await?;
            self.answers().insert(url, answer.clone());
            Ok(answer)
        })
    }
}
