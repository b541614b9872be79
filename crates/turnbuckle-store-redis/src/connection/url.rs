//! The URL of a store: where Redis is, and how to authenticate.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::error::RedisStoreError;

const DEFAULT_PORT: u16 = 6379;
const DEFAULT_SENTINEL_PORT: u16 = 26379;

/// A parsed URL. `Display` shows the addresses only.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreUrl {
    pub(crate) kind: UrlKind,
    pub(crate) tls: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    /// At least one. For Sentinel, these are the sentinels.
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) database: i64,
}

/// How the servers at the addresses are organized.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UrlKind {
    /// One server.
    Single,
    /// Sentinels that know the address of the primary under this name.
    Sentinel { group: String },
    /// Nodes of a cluster.
    Cluster,
}

impl StoreUrl {
    /// Parses `redis://`, `rediss://`, `redis-sentinel://`, `rediss-sentinel://`, `redis-cluster://` and `rediss-cluster://`.
    pub(crate) fn parse(url: &str) -> Result<Self, RedisStoreError> {
        Self::parse_parts(url).map_err(|reason| RedisStoreError::InvalidUrl {
            reason: reason.to_owned(),
        })
    }

    fn parse_parts(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or("a scheme such as `redis://` is missing")?;
        let (tls, suffix) = match scheme.split_once('-').unwrap_or((scheme, "")) {
            ("redis", suffix) => (false, suffix),
            ("rediss", suffix) => (true, suffix),
            _ => return Err("the scheme must be redis, rediss, redis-sentinel or redis-cluster"),
        };
        if rest.contains(['?', '#']) {
            return Err("a query or fragment is not supported; encode special characters");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = match authority.rsplit_once('@') {
            Some((credentials, hosts)) => (credentials, hosts),
            None => ("", authority),
        };
        let (user, password) = parse_credentials(credentials)?;
        let default_port = match suffix {
            "sentinel" => DEFAULT_SENTINEL_PORT,
            _ => DEFAULT_PORT,
        };
        let hosts: Vec<_> = hosts
            .split(',')
            .map(|host| parse_host(host, default_port))
            .collect::<Result<_, _>>()?;
        let (kind, database) = match suffix {
            "" if hosts.len() > 1 => return Err("one server has one address"),
            "" => (UrlKind::Single, parse_database(path)?),
            "sentinel" => parse_group(path)?,
            "cluster" if !path.is_empty() => return Err("a URL of a cluster ends after its hosts"),
            "cluster" => (UrlKind::Cluster, 0),
            _ => return Err("the scheme must be redis, rediss, redis-sentinel or redis-cluster"),
        };
        Ok(Self {
            kind,
            tls,
            user,
            password,
            hosts,
            database,
        })
    }
}

fn parse_credentials(text: &str) -> Result<(Option<String>, Option<String>), &'static str> {
    let decode = |text: &str| {
        let decoded = percent_decode_str(text).decode_utf8();
        decoded
            .map(|text| Some(text.into_owned()).filter(|text| !text.is_empty()))
            .map_err(|_| "user and password must be UTF-8")
    };
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let (user, password) = (decode(user)?, decode(password)?);
    if user.is_some() && password.is_none() {
        return Err(
            "the password is missing; write `user:password@`, or `:password@` without a user",
        );
    }
    Ok((user, password))
}

fn parse_host(text: &str, default_port: u16) -> Result<(String, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest
                .split_once(']')
                .ok_or("`]` of an IPv6 address is missing")?;
            (host, port.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err("a host is missing");
    }
    let port = match port {
        Some(port) => port.parse().map_err(|_| "a port is not a number")?,
        None => default_port,
    };
    Ok((host.to_owned(), port))
}

fn parse_group(path: &str) -> Result<(UrlKind, i64), &'static str> {
    let (group, database) = path.split_once('/').unwrap_or((path, ""));
    if group.is_empty() {
        return Err("the name of the primary is missing: `redis-sentinel://HOST:PORT/NAME`");
    }
    let group = group.to_owned();
    Ok((UrlKind::Sentinel { group }, parse_database(database)?))
}

fn parse_database(text: &str) -> Result<i64, &'static str> {
    if text.is_empty() {
        return Ok(0);
    }
    let number: u16 = text.parse().map_err(|_| "the database is not a number")?;
    Ok(number.into())
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            if host.contains(':') {
                write!(f, "{comma}[{host}]:{port}")?;
            } else {
                write!(f, "{comma}{host}:{port}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_one_server_has_credentials_and_a_database() {
        let url = StoreUrl::parse("rediss://app:p%40ss:word@cache.example/2").unwrap();

        assert_eq!(url.kind, UrlKind::Single);
        assert!(url.tls);
        assert_eq!(url.user.as_deref(), Some("app"));
        assert_eq!(url.password.as_deref(), Some("p@ss:word"));
        assert_eq!(url.hosts, [("cache.example".to_owned(), 6379)]);
        assert_eq!(url.database, 2);
        assert_eq!(url.to_string(), "cache.example:6379");
    }

    #[test]
    fn a_url_of_sentinels_has_the_name_of_the_primary() {
        let url = StoreUrl::parse("redis-sentinel://:secret@a:1,[::1]:2,c/main/3").unwrap();

        let group = "main".to_owned();
        assert_eq!(url.kind, UrlKind::Sentinel { group });
        assert_eq!((url.user, url.password), (None, Some("secret".to_owned())));
        let hosts = [("a", 1), ("::1", 2), ("c", 26379)];
        assert_eq!(url.hosts, hosts.map(|(host, port)| (host.to_owned(), port)));
        assert_eq!(url.database, 3);
    }

    #[test]
    fn a_url_of_a_cluster_has_several_addresses() {
        let url = StoreUrl::parse("redis-cluster://a:1,b:2").unwrap();

        assert_eq!(url.kind, UrlKind::Cluster);
        assert_eq!(url.to_string(), "a:1,b:2");
    }

    #[test]
    fn an_error_about_a_url_does_not_contain_its_password() {
        for url in [
            "http://u:hunter2@host",
            "redis://u:hunter2@host:port",
            "redis://u:hunter2@",
            "redis://u:hunter2@a,b",
            "redis://u:hunter2@host/db",
            "redis://u:hunter2@host?a=b",
            "redis://hunter2@host",
            "redis://u:hunter2%ff@host",
            "redis-sentinel://u:hunter2@host",
            "redis-cluster://u:hunter2@host/1",
            "redis-hunter2://host",
            "hunter2",
        ] {
            let error = StoreUrl::parse(url).map(|_| ()).unwrap_err();

            let shown = format!("{error} {error:?}");
            assert!(!shown.contains("hunter2"), "{url}: {shown}");
        }
    }
}
