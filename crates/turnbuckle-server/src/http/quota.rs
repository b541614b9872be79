//! Whose quota a request counts against.

use std::net::{IpAddr, SocketAddr};

use turnbuckle_store::SessionOwner;

use super::endpoint::Head;

/// The caller of a request: its principal, else the address it comes from.
///
/// Addresses of this machine and of private networks, and requests that come from no known address, may stand for
/// everyone behind a reverse proxy: those owners are shared.
pub(super) fn owner(head: &Head) -> SessionOwner {
    match head.principal() {
        Some(principal) => SessionOwner::principal(&principal),
        None => of_address(head.peer()),
    }
}

/// The owner that all callers from an address count as.
pub(super) fn of_address(peer: Option<SocketAddr>) -> SessionOwner {
    let Some(address) = peer.map(|peer| peer.ip().to_canonical()) else {
        return SessionOwner::shared("unknown address");
    };
    if address.is_loopback() {
        return SessionOwner::shared("loopback");
    }
    let key = match address {
        IpAddr::V4(address) => format!("address {address}"),
        // Whoever has one address of a network of 64 bits has all of them.
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("network {a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    };
    match is_private(address) {
        true => SessionOwner::shared(key),
        false => SessionOwner::caller(key),
    }
}

/// Returns whether an address is not one of the public internet, so that a proxy may have it.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            // RFC 6598: between a provider and its customers.
            let is_carrier = a == 100 && (64..128).contains(&b);
            is_carrier
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
        }
        IpAddr::V6(address) => {
            address.is_unique_local() || address.is_unicast_link_local() || address.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str) -> SessionOwner {
        let address: IpAddr = address.parse().unwrap();
        of_address(Some((address, 4711).into()))
    }

    #[test]
    fn every_port_and_every_spelling_of_an_address_is_one_caller() {
        let other_port = of_address(Some("203.0.113.7:1".parse().unwrap()));

        assert_eq!(of("203.0.113.7"), other_port);
        assert_eq!(of("::ffff:203.0.113.7"), other_port);
        assert_ne!(of("203.0.113.8"), other_port);
        assert!(!other_port.is_shared());
    }

    #[test]
    fn a_network_of_64_bits_is_one_caller() {
        assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert!(!of("2001:db8:1:2::1").is_shared());
    }

    #[test]
    fn where_a_proxy_may_be_many_callers_share_an_owner() {
        for address in [
            "127.0.0.1",
            "127.9.9.9",
            "::1",
            "10.1.2.3",
            "172.17.0.2",
            "192.168.1.1",
            "100.64.0.1",
            "169.254.1.1",
            "fd00::1",
            "fe80::1",
        ] {
            assert!(of(address).is_shared(), "{address}");
        }
        assert!(of_address(None).is_shared());
        assert_eq!(of("127.0.0.1"), of("::1"));
        assert_ne!(of("10.1.2.3"), of("10.1.2.4"));
    }
}
