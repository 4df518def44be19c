//! Networks a token may be used from, in CIDR form (RFC 4632, RFC 4291).

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A network: an address, of which the first bits count.
///
/// Bits of the address beyond the length are ignored, a bare address is a network of itself alone, and an IPv4 address
/// written as an IPv6 one (`::ffff:a.b.c.d`) is that IPv4 address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cidr {
    address: IpAddr,
    length: u32,
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given} is no network; write an address and the number of its bits that count, such as 10.0.0.0/8 or fd00::/8")]
pub(crate) struct CidrError {
    given: Box<str>,
}

impl Cidr {
    /// Whether the address is inside.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                u32::MAX.checked_shl(32 - self.length).is_none_or(|mask| (own.to_bits() ^ other.to_bits()) & mask == 0)
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                u128::MAX.checked_shl(128 - self.length).is_none_or(|mask| (own.to_bits() ^ other.to_bits()) & mask == 0)
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        parse(text).ok_or_else(|| CidrError { given: text.chars().take(64).collect() })
    }
}

impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

fn parse(text: &str) -> Option<Cidr> {
    let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let address: IpAddr = address.parse().ok()?;
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let length = match length {
        None => bits,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            digits.parse().ok().filter(|length| *length <= bits)?
        }
        Some(_) => return None,
    };
    match address.to_canonical() {
        mapped if mapped.is_ipv4() == address.is_ipv4() => Some(Cidr { address, length }),
        // Shorter than the prefix ::ffff:0:0/96 it is a network of IPv6 addresses after all.
        mapped => Some(length.checked_sub(96).map_or(Cidr { address, length }, |length| Cidr { address: mapped, length })),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn addresses_are_inside_or_outside() {
        for (network, address, inside) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.9.9.9/8", "10.0.0.1", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "::1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7/32", "192.0.2.6", false),
            ("192.0.2.6/31", "192.0.2.7", true),
            ("::/0", "fe80::1", true),
            ("::/0", "10.0.0.1", false),
            ("::1", "::1", true),
            ("fd00::/8", "fdff::1", true),
            ("fd00::/8", "fe00::1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("::ffff:10.0.0.0/104", "10.1.1.1", true),
            ("::ffff:10.0.0.0/104", "11.1.1.1", false),
        ] {
            let network: Cidr = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), inside, "{network:?} {address}");
        }
    }

    #[test]
    fn what_is_no_network_is_named() {
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/-1", "10.0.0/8", "host", "1.2.3.4/8/8"] {
            let error = text.parse::<Cidr>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text} is no network")), "{error}");
        }
    }

    proptest! {
        #[test]
        fn bits_are_compared_one_by_one(own: u32, other: u32, length in 0_u32..=32) {
            let network = Cidr { address: IpAddr::V4(own.into()), length };
            let same = (0..length).all(|bit| (own >> (31 - bit)) & 1 == (other >> (31 - bit)) & 1);
            prop_assert_eq!(network.contains(IpAddr::V4(other.into())), same);
        }
    }
}
