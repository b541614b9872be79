//! The addresses and host names of this machine, as other machines use them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use turnbuckle_text::url::{Host, HostPort};

use crate::environment::Environment;

/// The addresses and host names of this machine.
#[derive(Debug, Default)]
pub(crate) struct MachineNames {
    /// The addresses, the most useful one first; without loopback and link-local addresses.
    addresses: Vec<IpAddr>,
    names: Vec<String>,
}

impl MachineNames {
    /// Asks the system. What it does not tell is left out.
    pub(crate) fn detect(environment: &Environment) -> Self {
        let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
        let addresses = interfaces.iter().map(if_addrs::Interface::ip);
        Self::new(
            addresses.collect(),
            default_route_address(),
            host_name(environment).as_deref(),
        )
    }

    fn new(
        mut addresses: Vec<IpAddr>,
        default_route: Option<IpAddr>,
        host_name: Option<&str>,
    ) -> Self {
        addresses.retain(is_usable);
        addresses.sort_by_key(|address| (Some(*address) != default_route, address.is_ipv6()));
        addresses.dedup();
        Self {
            addresses,
            names: host_name.map(names).unwrap_or_default(),
        }
    }

    /// Returns the values of `Host` that name this machine.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = String> {
        let addresses = self
            .addresses
            .iter()
            .map(|address| Host::Ip(*address).to_string());
        addresses.chain(self.names.iter().cloned())
    }

    /// Returns the hosts with ports at which other machines reach a listener, the most useful one first; at least one.
    pub(crate) fn authorities(&self, bound: SocketAddr) -> Vec<String> {
        let port = bound.port();
        if !bound.ip().is_unspecified() {
            return vec![bound.to_string()];
        }
        let is_reachable = |address: &&IpAddr| address.is_ipv4() || bound.is_ipv6();
        let addresses = self.addresses.iter().filter(is_reachable);
        let mut authorities: Vec<_> = addresses
            .map(|address| SocketAddr::new(*address, port).to_string())
            .collect();
        // Another machine may not resolve the name, so it comes after the addresses.
        let name = self.names.first().map(|name| format!("{name}:{port}"));
        authorities.extend(name);
        if authorities.is_empty() {
            authorities.push(SocketAddr::from((Ipv4Addr::LOCALHOST, port)).to_string());
        }
        authorities
    }
}

/// Returns whether a URL with the address works on another machine. A link-local IPv6 address needs a zone.
fn is_usable(address: &IpAddr) -> bool {
    let is_link_local = match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    };
    !address.is_loopback() && !address.is_unspecified() && !is_link_local
}

/// Returns the host name, its first label, and that label in the domain of multicast DNS.
fn names(host_name: &str) -> Vec<String> {
    let host_name = host_name.strip_suffix('.').unwrap_or(host_name);
    let Ok(HostPort {
        host: Host::Name(host_name),
        port: None,
    }) = host_name.parse()
    else {
        return Vec::new();
    };
    if host_name == "localhost" {
        return Vec::new();
    }
    let label = host_name.split('.').next().unwrap_or_default().to_owned();
    let local = format!("{label}.local");
    let mut names = vec![host_name, label, local];
    let mut known: Vec<String> = Vec::new();
    names.retain(|name| {
        let is_new = !known.contains(name);
        known.push(name.clone());
        is_new
    });
    names
}

/// Returns the address that this machine uses for other networks. Nothing is sent.
fn default_route_address() -> Option<IpAddr> {
    /// An address of the documentation range, RFC 5737.
    const ELSEWHERE: (Ipv4Addr, u16) = (Ipv4Addr::new(203, 0, 113, 1), 9);
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect(ELSEWHERE).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

#[cfg(unix)]
fn host_name(_: &Environment) -> Option<String> {
    let name = rustix::system::uname();
    name.nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn host_name(environment: &Environment) -> Option<String> {
    environment.var("COMPUTERNAME").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> MachineNames {
        let addresses = [
            "127.0.0.1",
            "172.17.0.1",
            "192.168.1.5",
            "::1",
            "fe80::1",
            "2001:db8::5",
        ];
        MachineNames::new(
            addresses.map(|address| address.parse().unwrap()).to_vec(),
            Some("192.168.1.5".parse().unwrap()),
            Some("Desk.example.com"),
        )
    }

    #[test]
    fn the_hosts_are_addresses_and_names_of_this_machine() {
        assert_eq!(
            Vec::from_iter(machine().hosts()),
            [
                "192.168.1.5",
                "172.17.0.1",
                "[2001:db8::5]",
                "desk.example.com",
                "desk",
                "desk.local"
            ]
        );
    }

    #[test]
    fn an_unspecified_address_is_replaced_by_usable_ones() {
        let authorities = |bound: &str| machine().authorities(bound.parse().unwrap());

        assert_eq!(
            authorities("0.0.0.0:80"),
            ["192.168.1.5:80", "172.17.0.1:80", "desk.example.com:80"]
        );
        assert!(authorities("[::]:80").contains(&"[2001:db8::5]:80".to_owned()));
        assert_eq!(authorities("127.0.0.1:80"), ["127.0.0.1:80"]);
        let unknown = MachineNames::default().authorities("0.0.0.0:80".parse().unwrap());
        assert_eq!(unknown, ["127.0.0.1:80"]);
    }

    #[test]
    fn a_host_name_that_is_no_host_is_left_out() {
        for name in [
            "",
            "localhost",
            "a b",
            "a/b",
            "ä",
            "a..b",
            "10.0.0.1",
            "a:80",
        ] {
            assert_eq!(names(name), [""; 0], "{name}");
        }
        assert_eq!(names("desk"), ["desk", "desk.local"]);
        assert_eq!(names("desk.local."), ["desk.local", "desk"]);
    }
}
