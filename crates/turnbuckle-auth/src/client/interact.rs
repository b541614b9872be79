//! The person at the other end.

use turnbuckle_protocol::guard::BoxFuture;

use super::device::DeviceCode;
use crate::Failure;

/// Somebody who can log in: in a browser, or on another device.
///
/// [`Loopback`](super::Loopback) is the person at this machine.
pub trait Interact: Send + Sync + 'static {
    /// Returns where the browser shall come back to, and listens there from now on.
    ///
    /// `wanted` is the URI that the client is registered with; another one means that it has to register again, which is fine.
    fn redirect_uri<'a>(
        &'a self,
        wanted: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, Failure>>;

    /// Shows a URL to the person, and returns the URL (or its query) that the browser came back with.
    ///
    /// The `redirect_uri` and the `state` of this login are in the URL. What came back is checked by whoever asked.
    fn visit<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, Failure>>;

    /// Shows a code that is to be typed on another device; the login is awaited elsewhere.
    fn device<'a>(&'a self, code: &'a DeviceCode) -> BoxFuture<'a, Result<(), Failure>>;
}
