//! In which kind of network an address is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of network; each is more of a secret than the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// Anybody can reach it.
    Public,
    /// Of an organisation, a home or a provider.
    Private,
    /// This machine.
    Loopback,
    /// No server is there that anybody should be sent to: links, groups, examples, what nobody has assigned, and the addresses
    /// at which clouds hand keys to whoever asks.
    Never,
}

/// Where clouds hand out keys, as far as it is not on the link (169.254.0.0/16).
const METADATA: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
];

impl Class {
    /// Says in which kind of network an address is.
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            address if METADATA.contains(&address) => Self::Never,
            IpAddr::V4(address) => of_four(address),
            IpAddr::V6(address) => of_six(address),
        }
    }
}

fn of_four(address: Ipv4Addr) -> Class {
    match address.octets() {
        [127, ..] => Class::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Class::Private,
        // This network, and the link.
        [0, ..] | [169, 254, ..] => Class::Never,
        // Protocols of the IETF, the relays of 6to4, examples, and benchmarks.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 51, 100, _] | [203, 0, 113, _] => {
            Class::Never
        }
        [198, 18 | 19, ..] => Class::Never,
        // Groups, what is reserved, and everybody.
        [224..=255, ..] => Class::Never,
        _ => Class::Public,
    }
}

fn of_six(address: Ipv6Addr) -> Class {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        [0xfc00..=0xfdff, ..] => Class::Private,
        // NAT64.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => carrying([inner(high, low)]),
        // Teredo, with the address of its server, and with that of its client turned over.
        [0x2001, 0, server, rest, _, _, high, low] => {
            carrying([inner(server, rest), inner(!high, !low)])
        }
        // 6to4.
        [0x2002, high, low, ..] => carrying([inner(high, low)]),
        // Protocols of the IETF, and examples.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Never,
        [0x2000..=0x3fff, ..] => Class::Public,
        // The link, sites, groups, and what was never given to anybody.
        _ => Class::Never,
    }
}

/// An address that leads through a gateway to others: only to public ones, since a gateway's own networks are not ours.
fn carrying<const N: usize>(inner: [Ipv4Addr; N]) -> Class {
    let public = |inner| Class::of(IpAddr::V4(inner)) == Class::Public;
    match inner.into_iter().all(public) {
        true => Class::Public,
        false => Class::Never,
    }
}

fn inner(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_in_one_kind_of_network() {
        for (class, addresses) in [
            (
                Class::Public,
                "1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 \
                 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 \
                 198.20.0.0 223.255.255.255 2606:4700::1111 2001:200::1 2400:: 3ffe:: ::ffff:1.1.1.1 64:ff9b::1.1.1.1 \
                 2002:101:101::1 2001:0:101:101:0:0:fefe:fefe",
            ),
            (
                Class::Private,
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0 100.127.255.255 \
                 fc00:: fdff:ffff::1 ::ffff:10.0.0.1 ::ffff:192.168.1.1",
            ),
            (
                Class::Loopback,
                "127.0.0.0 127.0.0.1 127.255.255.255 ::1 ::ffff:127.0.0.1 ::ffff:7f00:1",
            ),
            (
                Class::Never,
                // This network, the link, groups, everybody, reserved.
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
                assert_eq!(Class::of(parsed), class, "{address}");
            }
        }
    }
}
