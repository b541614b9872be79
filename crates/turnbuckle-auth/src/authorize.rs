//! The seam between a client on HTTP and whoever has its tokens.

use std::{fmt, sync::Arc};

use turnbuckle_protocol::guard::BoxFuture;

use crate::{Challenge, Failure, Secret};

/// Brings credentials for the requests of one client to one server.
///
/// The client asks before every request, and again after a refusal. Many requests are under way at one time: those that were
/// refused with older credentials than there are now are simply sent again.
pub trait Authorize: Send + Sync + 'static {
    /// Returns what goes along with a request; nothing if nothing is known yet.
    fn credentials<'a>(
        &'a self,
        sending: Sending<'a>,
    ) -> BoxFuture<'a, Result<Credentials, Failure>>;

    /// Hears of a refusal, and gets new credentials if it can: by a refresh, a login, a larger scope, another nonce.
    ///
    /// May take minutes, since people log in.
    fn refused<'a>(&'a self, refused: Refused<'a>) -> BoxFuture<'a, Result<Next, Failure>>;

    /// Returns the extensions of the protocol by which tokens are got; the client declares them.
    fn extensions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Hears the nonce that a server wants in the next proof.
    fn nonce(&self, nonce: &str) {
        let _ = nonce;
    }
}

/// Several clients, or a program beside its client, may share one.
impl<A: Authorize + ?Sized> Authorize for Arc<A> {
    fn credentials<'a>(
        &'a self,
        sending: Sending<'a>,
    ) -> BoxFuture<'a, Result<Credentials, Failure>> {
        (**self).credentials(sending)
    }

    fn refused<'a>(&'a self, refused: Refused<'a>) -> BoxFuture<'a, Result<Next, Failure>> {
        (**self).refused(refused)
    }

    fn extensions(&self) -> &'static [&'static str] {
        (**self).extensions()
    }

    fn nonce(&self, nonce: &str) {
        (**self).nonce(nonce);
    }
}

/// A request that is about to be sent.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Sending<'a> {
    /// Its method, as `POST`.
    pub method: &'a str,
    /// Its URL, as it is sent.
    pub url: &'a str,
}

/// What goes along with a request.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Credentials {
    /// Headers, names in lower case.
    pub headers: Vec<(&'static str, Secret)>,
    /// Which credentials these are: another number, other credentials.
    pub generation: u64,
}

/// A request that was refused with 401 or 403.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Refused<'a> {
    /// The request.
    pub sending: Sending<'a>,
    /// The status.
    pub status: u16,
    /// What the server wants; empty if it said nothing that can be read.
    pub challenges: &'a [Challenge],
    /// Which credentials the request was sent with.
    pub generation: u64,
    /// How often this request was sent, this time included.
    pub attempts: u32,
}

/// What to do with a request that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send it again: there are other credentials.
    TryAgain,
    /// Hand the refusal to whoever sent it.
    GiveUp,
}

impl<'a> Sending<'a> {
    /// Describes a request.
    pub fn new(method: &'a str, url: &'a str) -> Self {
        Self { method, url }
    }
}

impl Credentials {
    /// Makes credentials of headers.
    pub fn new(generation: u64, headers: Vec<(&'static str, Secret)>) -> Self {
        Self {
            headers,
            generation,
        }
    }
}

impl<'a> Refused<'a> {
    /// Describes a refusal.
    pub fn new(
        sending: Sending<'a>,
        status: u16,
        challenges: &'a [Challenge],
        generation: u64,
        attempts: u32,
    ) -> Self {
        Self {
            sending,
            status,
            challenges,
            generation,
            attempts,
        }
    }
}

impl fmt::Debug for Refused<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.status, self.sending.method)
    }
}
