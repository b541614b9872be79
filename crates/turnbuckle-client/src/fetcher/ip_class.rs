//! Classification of IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A class of IP addresses; ordered, each is less accessible than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum IpClass {
    /// Publicly reachable.
    Public,
    /// A private network of an organization, a home or a provider.
    Private,
    /// This machine.
    Loopback,
    /// Not a valid destination: link-local, multicast, documentation, unassigned, and cloud metadata addresses.
    Never,
}

/// Cloud metadata addresses outside of the link-local network (169.254.0.0/16).
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

impl IpClass {
    /// Returns the class of an address.
    pub(super) fn from_ip(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if METADATA.contains(&address) => Self::Never,
            IpAddr::V4(address) => classify_v4(address),
            IpAddr::V6(address) => classify_v6(address),
        }
    }
}

fn classify_v4(address: Ipv4Addr) -> IpClass {
    match address.octets() {
        [127, ..] => IpClass::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => IpClass::Private,
        // "This network", and link-local.
        [0, ..] | [169, 254, ..] => IpClass::Never,
        // IETF protocol assignments, 6to4 relays, documentation, and benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            IpClass::Never
        }
        [198, 18 | 19, ..] => IpClass::Never,
        // Multicast, reserved, and broadcast.
        [224..=255, ..] => IpClass::Never,
        _ => IpClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> IpClass {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => IpClass::Loopback,
        [0xfc00..=0xfdff, ..] => IpClass::Private,
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => classify_tunneled([inner(high, low)]),
        // Teredo, with the address of its server, and the inverted address of its client.
        [0x2001, 0, server, rest, _, _, high, low] => {
            classify_tunneled([inner(server, rest), inner(!high, !low)])
        }
        // 6to4.
        [0x2002, high, low, ..] => classify_tunneled([inner(high, low)]),
        // IETF protocol assignments, and documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => IpClass::Never,
        [0x2000..=0x3fff, ..] => IpClass::Public,
        // Link-local, site-local, multicast, and unassigned.
        _ => IpClass::Never,
    }
}

/// Classifies an address that a gateway translates to others: valid only if those are public, since the networks of a
/// gateway are not the user's.
fn classify_tunneled<const N: usize>(inner: [Ipv4Addr; N]) -> IpClass {
    let public = |inner| IpClass::from_ip(IpAddr::V4(inner)) == IpClass::Public;
    if inner.into_iter().all(public) {
        IpClass::Public
    } else {
        IpClass::Never
    }
}

fn inner(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_one_class() {
        for (class, addresses) in [
            (
                IpClass::Public,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 \
                 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 \
                 198.20.0.0 223.255.255.255 2606:4700::1111 2001:200::1 2400:: 3ffe:: ::ffff:1.1.1.1 64:ff9b::1.1.1.1 \
                 2002:101:101::1 2001:0:101:101:0:0:fefe:fefe",
            ),
            (
                IpClass::Private,
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0 100.127.255.255 \
                 fc00:: fdff:ffff::1 ::ffff:10.0.0.1 ::ffff:192.168.1.1",
            ),
            (
                IpClass::Loopback,
                "127.0.0.0 127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1",
            ),
            (
                IpClass::Never,
                // This network, link-local, multicast, broadcast, reserved.
                "0.0.0.0 0.255.255.255 169.254.0.0 169.254.169.254 169.254.170.2 169.254.255.255 224.0.0.1 239.255.255.255 \
                 240.0.0.0 255.255.255.255 \
                 192.0.0.0 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.0 198.19.255.255 198.51.100.7 203.0.113.9 \
                 100.100.100.200 168.63.129.16 fd00:ec2::254 fd20:ce::254 \
                 :: fe80::1 febf::1 fec0::1 ff02::1 100::1 2001:db8::1 3fff::1 2001:2::1 2001:10::1 2001:20::1 5f00::1 4000::1 \
                 ::ffff:169.254.169.254 ::ffff:0.0.0.0 ::ffff:100.100.100.200 ::127.0.0.1 ::10.0.0.1 ::1.1.1.1 \
                 ::ffff:0:127.0.0.1 64:ff9b:1::1.1.1.1 \
                 64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::169.254.169.254 64:ff9b::192.168.0.1 \
                 2002:7f00:1:: 2002:a00:1::1 2002:a9fe:a9fe:: 2002:c0a8:1::1 \
                 2001:0:101:101:0:0:80ff:fffe 2001:0:101:101:0:0:5601:5601 2001:0:a00:1:0:0:fefe:fefe",
            ),
        ] {
            for address in addresses.split_ascii_whitespace() {
                let parsed: IpAddr = address.parse().unwrap();
                assert_eq!(IpClass::from_ip(parsed), class, "{address}");
            }
        }
    }
}
