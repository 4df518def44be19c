//! Which addresses only the own machine or its network knows (RFC 6890 and the registries of IANA that follow it).
//!
//! A page of the web that names one of them asks the crawler to fetch what the page's author cannot reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Whether an address belongs to this machine, to its network or to no single host: loopback, private use, link-local, shared
/// (RFC 6598), unspecified, multicast, broadcast, benchmarks and reserved space. An IPv6 address that carries one of IPv4
/// (mapped, compatible, 6to4, NAT64, Teredo) is what that one is. Addresses for documentation are nobody's: not among them.
#[must_use]
pub fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_private_v4(address),
        IpAddr::V6(address) => is_private_v6(address),
    }
}

/// Whether a URL names such an address by itself: as a literal, or as `localhost` or a name below it, which are always
/// loopback (RFC 6761, 6.3). Other names are told by what they resolve to.
#[must_use]
pub fn names_private(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => is_private_v4(address),
        Some(Host::Ipv6(address)) => is_private_v6(address),
        Some(Host::Domain(name)) => is_localhost(name),
        None => false,
    }
}

/// `localhost` and names below it.
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    let at = name.len().checked_sub("localhost".len());
    let Some((before, last)) = at.and_then(|at| name.split_at_checked(at)) else { return false };
    last.eq_ignore_ascii_case("localhost") && (before.is_empty() || before.ends_with('.'))
}

fn is_private_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        // This network, private, loopback; multicast and reserved, broadcast included.
        (0 | 10 | 127 | 224..=255, _, _) => true,
        // Shared by a provider's customers (RFC 6598).
        (100, 64..=127, _) => true,
        // Link-local, where clouds answer with credentials.
        (169, 254, _) => true,
        (172, 16..=31, _) => true,
        // Protocol assignments, and private.
        (192, 0, 0) | (192, 168, _) => true,
        // Benchmarks (RFC 2544).
        (198, 18..=19, _) => true,
        _ => false,
    }
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    if let Some(within) = within(address) {
        return is_private_v4(within);
    }
    let [first, second, third, ..] = address.segments();
    match first {
        // Unspecified and loopback are among the compatible ones above. Discarded (RFC 6666).
        0x0100 => (second, third) == (0, 0),
        // NAT64 of the own network (RFC 8215).
        0x0064 => (second, third) == (0xff9b, 1),
        // Segment routing (RFC 9602), unique local, link-local and its elder site-local, multicast.
        0x5f00 | 0xfc00..=0xfdff | 0xfe80..=0xfeff | 0xff00..=0xffff => true,
        // Benchmarks (RFC 5180), ORCHID.
        0x2001 => (second, third) == (2, 0) || (0x10..=0x2f).contains(&second),
        _ => false,
    }
}

/// The IPv4 address that an IPv6 address leads to.
fn within(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Some(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match (a, b, c, d, e, f) {
        // Compatible and mapped; translated (RFC 2765).
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0, 0, 0, 0, 0xffff, 0) => v4(g, h),
        // NAT64 (RFC 6052).
        (0x64, 0xff9b, 0, 0, 0, 0) => v4(g, h),
        // 6to4 (RFC 3056).
        (0x2002, high, low, ..) => v4(high, low),
        // Teredo (RFC 4380): the client's address, inverted.
        (0x2001, 0, ..) => v4(!g, !h),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn private_addresses_are_told_at_both_ends_of_their_ranges() {
        let table = [
            ("0.0.0.0", true),
            ("0.255.255.255", true),
            ("1.0.0.0", false),
            ("9.255.255.255", false),
            ("10.0.0.0", true),
            ("10.255.255.255", true),
            ("11.0.0.0", false),
            ("100.63.255.255", false),
            ("100.64.0.0", true),
            ("100.127.255.255", true),
            ("100.128.0.0", false),
            ("126.255.255.255", false),
            ("127.0.0.1", true),
            ("127.255.255.255", true),
            ("128.0.0.0", false),
            ("169.253.255.255", false),
            ("169.254.169.254", true),
            ("169.255.0.0", false),
            ("172.15.255.255", false),
            ("172.16.0.0", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("192.0.0.8", true),
            ("192.0.2.1", false),
            ("192.167.255.255", false),
            ("192.168.0.1", true),
            ("192.169.0.0", false),
            ("198.17.255.255", false),
            ("198.18.0.0", true),
            ("198.19.255.255", true),
            ("198.20.0.0", false),
            ("223.255.255.255", false),
            ("224.0.0.1", true),
            ("240.0.0.1", true),
            ("255.255.255.255", true),
            ("8.8.8.8", false),
            ("::", true),
            ("::1", true),
            ("::7f00:1", true),
            ("::8.8.8.8", false),
            ("::ffff:10.0.0.1", true),
            ("::ffff:8.8.8.8", false),
            ("::ffff:0:127.0.0.1", true),
            ("64:ff9b::10.0.0.1", true),
            ("64:ff9b::8.8.8.8", false),
            ("64:ff9b:1::1", true),
            ("64:ff9b:2::1", false),
            ("100::1", true),
            ("100:1::1", false),
            ("2001::5f5f:5f5f", false),
            ("2001:0:0:0:0:0:80ff:fffe", true),
            ("2001:2::1", true),
            ("2001:4860:4860::8888", false),
            ("2002:7f00:1::", true),
            ("2002:808:808::", false),
            ("2606:4700::1111", false),
            ("5f00::1", true),
            ("fbff::1", false),
            ("fc00::", true),
            ("fd12:3456::1", true),
            ("fdff:ffff::1", true),
            ("fe00::1", false),
            ("fe7f::1", false),
            ("fe80::1", true),
            ("febf::1", true),
            ("fec0::1", true),
            ("feff::1", true),
            ("ff02::1", true),
        ];
        for (address, expected) in table {
            assert_eq!(is_private(address.parse().unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn every_spelling_of_a_literal_is_seen_through() {
        for (url, expected) in [
            ("http://127.0.0.1/", true),
            ("http://127.1/", true),
            ("http://2130706433/", true),
            ("http://0x7f.0.0.1/", true),
            ("http://0177.0.0.1:8080/", true),
            ("http://%31%32%37.0.0.1/", true),
            ("http://\u{ff11}\u{ff12}\u{ff17}.0.0.1/", true),
            ("http://[::ffff:7f00:1]/", true),
            ("http://[::]/", true),
            ("http://0/", true),
            ("http://user@10.1/", true),
            ("http://localhost/", true),
            ("http://LOCALHOST.:80/", true),
            ("http://a.b.localhost/", true),
            ("http://notlocalhost/", false),
            ("http://localhost.example/", false),
            ("http://8.8.8.8/", false),
            ("http://a.test/?u=http://127.0.0.1/", false),
            ("data:text/plain,127.0.0.1", false),
        ] {
            assert_eq!(names_private(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    proptest! {
        #[test]
        fn an_address_within_another_is_judged_alike(bits in any::<u32>()) {
            let inner = Ipv4Addr::from(bits);
            let [a, b] = [(bits >> 16) as u16, bits as u16];
            for outer in [
                inner.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, a, b),
                Ipv6Addr::new(0x2002, a, b, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 1, 2, 3, 4, !a, !b),
            ] {
                prop_assert_eq!(is_private(outer.into()), is_private(inner.into()));
            }
        }

        #[test]
        fn what_the_library_calls_private_is_private(bits in any::<u32>(), wide in any::<u128>()) {
            let v4 = Ipv4Addr::from(bits);
            let is_own = v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast() || v4.is_unspecified();
            prop_assert!(!is_own || is_private(v4.into()));
            let v6 = Ipv6Addr::from(wide);
            let is_own = v6.is_unique_local() || v6.is_unicast_link_local() || v6.is_multicast() || v6.is_loopback();
            prop_assert!(!is_own || is_private(v6.into()));
        }
    }
}
