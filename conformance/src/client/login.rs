//! The user, who follows the link and returns at once.

use std::error::Error;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use turnbuckle_auth::{
    AuthorizationError, AuthorizationStep,
    client::{UserAgent, device::DeviceCode},
};
use turnbuckle_protocol::authenticator::BoxFuture;

/// A browser that reads the redirect target, and does not follow it.
pub(crate) struct Login;

impl UserAgent for Login {
    fn redirect_uri<'a>(
        &'a self,
        _: Option<&'a str>,
    ) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        Box::pin(async { Ok("http://127.0.0.1:3000/callback".to_owned()) })
    }

    fn open_url<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, AuthorizationError>> {
        let failure = |error: Box<dyn Error + Send + Sync>| {
            AuthorizationError::new(AuthorizationStep::Authorization, error.to_string())
        };
        Box::pin(async move { redirect_target(url).await.map_err(failure) })
    }

    fn show_device_code<'a>(
        &'a self,
        _: &'a DeviceCode,
    ) -> BoxFuture<'a, Result<(), AuthorizationError>> {
        let failure = AuthorizationError::new(
            AuthorizationStep::DeviceCode,
            "device codes are not supported",
        );
        Box::pin(async { Err(failure) })
    }
}

/// Fetches a page of the suite, and returns its redirect target.
async fn redirect_target(url: &str) -> Result<String, Box<dyn Error + Send + Sync>> {
    let (host, path) = url
        .strip_prefix("http://")
        .and_then(|rest| rest.split_at_checked(rest.find('/')?))
        .ok_or("the page is not one of the suite")?;
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let mut headers = answer.lines().filter_map(|line| line.split_once(": "));
    let location = headers.find(|(name, _)| name.eq_ignore_ascii_case("location"));
    let (_, place) = location.ok_or("the page redirects nowhere")?;
    Ok(place.to_owned())
}
