//! Who may connect: hosts that requests may name, and the authentication of callers.

use turnbuckle_server::{
    Server,
    http::{Http, InvalidHost},
};

use super::{
    ListenAddress,
    auth::{AuthFlags, AuthSection, CallerAuth},
};
use crate::{
    environment::Environment,
    error::{CliError, Result},
};

/// The options and settings about who may connect.
#[derive(Debug)]
pub(crate) struct AccessOptions {
    pub(crate) flags: AuthFlags,
    /// The section of the configuration file.
    pub(crate) section: Option<AuthSection>,
    /// The hosts of `--allow-host`.
    pub(crate) hosts: Vec<String>,
    /// True if the client is on stdin and stdout.
    pub(crate) is_stdio: bool,
    /// True if other machines may connect without authentication.
    pub(crate) allows_unauthenticated: bool,
}

/// Who may connect.
#[derive(Debug)]
pub(crate) struct ClientAccess {
    /// The authentication of callers; `None` allows every caller.
    pub(crate) authorization: Option<CallerAuth>,
    /// Values of `Host` that are accepted in addition to the address.
    pub(crate) hosts: Vec<String>,
}

impl AccessOptions {
    /// Checks the options for an address.
    pub(crate) fn resolve(
        self,
        address: &ListenAddress,
        default_port: u16,
        environment: &Environment,
    ) -> Result<ClientAccess> {
        if matches!(address, ListenAddress::Unix(_)) && self.flags.any_given() {
            return Err(tokens_on_unix_socket(default_port));
        }
        // Only the user can connect to stdin or a socket, so they need no authentication.
        let authorization = match address {
            ListenAddress::Tcp(_) if !self.is_stdio => {
                CallerAuth::resolve(self.flags, self.section, environment)?
            }
            _ => None,
        };
        let is_open = authorization.is_none() && !self.allows_unauthenticated;
        if !self.is_stdio && !address.is_local() && is_open {
            return Err(unauthenticated_address(address));
        }
        let mut hosts = self.hosts;
        for host in &hosts {
            check_host(host).map_err(|error| CliError::could_not_run(error.to_string()))?;
        }
        // The host in the audience is allowed, too.
        hosts.extend(authorization.as_ref().and_then(CallerAuth::host));
        Ok(ClientAccess {
            authorization,
            hosts,
        })
    }
}

fn unauthenticated_address(address: &ListenAddress) -> CliError {
    CliError::could_not_run(format!(
        "{address} can be reached from other machines, and callers are not authenticated"
    ))
    .hint(
        "use --auth-issuer or --token-file; or listen on 127.0.0.1 and forward the port with ssh; \
         --dangerously-allow-unauthenticated listens anyway",
    )
}

fn tokens_on_unix_socket(default_port: u16) -> CliError {
    CliError::could_not_run("a Unix socket does not use tokens: only you can connect to it")
        .hint(format!("use --listen 127.0.0.1:{default_port} for HTTP"))
}

/// Checks that the server accepts a host, before anything is opened.
fn check_host(host: &str) -> std::result::Result<(), InvalidHost> {
    Http::new(Server::new("turnbuckle", "0"))
        .try_allow_host(host)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_host_is_valid_for_the_server() {
        let http = || Http::new(Server::new("a", "1"));
        for host in [
            "box",
            "box.example",
            "box.example:80",
            "192.168.1.2",
            "192.168.1.2:8321",
            "[::1]:8321",
        ] {
            assert_eq!(check_host(host), Ok(()), "{host}");
            let _ = http().allow_host(host);
        }
        for wrong in [
            "", "a..b", "a.", "a:+1", "a:", "http://a", "a/b", "a:1:2", "a b",
        ] {
            assert!(check_host(wrong).is_err(), "{wrong}");
        }
    }
}
