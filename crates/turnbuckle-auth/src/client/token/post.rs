//! A form on its way to an authorization server, from a client that shows who it is.

use crate::{
    Failure, Step,
    client::{
        form::Form,
        safe_url,
        told::{self, Described, Told},
    },
    fetch::{Fetch, Method, Request, Response},
};

use super::{Binding, Endpoint, authentication};

/// A form, and where it goes.
pub(in crate::client) struct Post<'a> {
    pub(in crate::client) url: &'a str,
    /// What is at the URL, for people.
    pub(in crate::client) what: &'a str,
    pub(in crate::client) step: Step,
    pub(in crate::client) form: Form,
    pub(in crate::client) endpoint: &'a Endpoint<'a>,
}

impl Post<'_> {
    /// Sends it, with a proof if tokens are to be bound; once more if the server wants a nonce in the proof.
    pub(in crate::client) async fn send(
        &self,
        fetch: &dyn Fetch,
        binding: Option<&mut Binding<'_>>,
    ) -> Result<Response, Failure> {
        safe_url::check(self.url, self.step, self.what)?;
        let Some(binding) = binding else {
            return told::fetched(fetch, self.request()?, self.step).await;
        };
        let (response, has_new_nonce) = self.send_with_proof(fetch, binding).await?;
        let wants_nonce = Told::new(&response, &[]).code.as_deref() == Some("use_dpop_nonce");
        if !(wants_nonce && has_new_nonce) {
            return Ok(response);
        }
        let (response, _) = self.send_with_proof(fetch, binding).await?;
        Ok(response)
    }

    /// What a failure says about it.
    pub(in crate::client) fn described(&self) -> Described {
        Described(format!("{} {}", Method::Post, bare(self.url)))
    }

    /// Sends it once, and says whether the answer brought another nonce than the proof had.
    async fn send_with_proof(
        &self,
        fetch: &dyn Fetch,
        binding: &mut Binding<'_>,
    ) -> Result<(Response, bool), Failure> {
        let nonce = binding.nonce.as_deref();
        let proof = binding.prover.proof("POST", self.url, None, nonce);
        let proof = proof.map_err(|error| self.fail(format!("no proof could be made: {error}")))?;
        let request = self.request()?.header("dpop", proof);
        let response = told::fetched(fetch, request, self.step).await?;
        let heard = response
            .header("dpop-nonce")
            .filter(|nonce| is_nonce(nonce));
        let is_new = heard.is_some() && heard != nonce;
        if let Some(heard) = heard {
            binding.nonce = Some(heard.to_owned());
        }
        Ok((response, is_new))
    }

    /// Makes the request anew, since a client that signs must not sign the same twice.
    fn request(&self) -> Result<Request, Failure> {
        let shown = authentication::show(self.form.clone(), self.endpoint);
        let (form, header) = shown.map_err(|error| match error.cure() {
            Some(cure) => self.fail(error.to_string()).cure(cure),
            None => self.fail(error.to_string()),
        })?;
        let request = Request::post(self.url, Form::CONTENT_TYPE, form.into_string());
        Ok(match header {
            Some(value) => request.header("authorization", value.expose()),
            None => request,
        })
    }

    fn fail(&self, reason: String) -> Failure {
        Failure::new(self.step, reason).request(self.described())
    }
}

/// A URL without its query.
fn bare(url: &str) -> &str {
    url.split('?').next().unwrap_or_default()
}

/// Whether it may stand in a JWT: what RFC 9449 lets a nonce be, and not without end.
fn is_nonce(nonce: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
    !nonce.is_empty() && nonce.len() <= 1024 && nonce.bytes().all(is_allowed)
}
