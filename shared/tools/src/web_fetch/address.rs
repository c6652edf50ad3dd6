//! Which addresses of the network may be fetched from: those of the public internet, and no others. What a name stands for
//! is looked up here and nowhere else, once for every address that is fetched, so that what was checked is what is
//! connected to.
//!
//! The ranges are IANA's special-purpose registries (RFC 6890 and its updates). A range that is missing there is public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::Url;

use super::NotFetched;

/// The most addresses that a name may have; one that has more is none that people use.
const ADDRESSES_MAX: usize = 64;

/// Where names are looked up, and what may be connected to.
pub(crate) struct Addresses {
    names: Names,
    /// What tests may connect to, although it is not public.
    #[cfg(test)]
    excepted: Vec<SocketAddr>,
}

enum Names {
    System,
    #[cfg(test)]
    Fixed(super::tests::Names),
}

impl Addresses {
    /// Names as this machine looks them up, and public addresses alone.
    pub(crate) fn public() -> Self {
        Self {
            names: Names::System,
            #[cfg(test)]
            excepted: Vec::new(),
        }
    }

    /// Names of a test's own, and beside the public addresses `excepted`.
    #[cfg(test)]
    pub(super) fn of_test(names: super::tests::Names, excepted: Vec<SocketAddr>) -> Self {
        Self { names: Names::Fixed(names), excepted }
    }

    /// The addresses of `url`, if every one of them may be connected to.
    pub(super) async fn of(&self, url: &Url) -> Result<Vec<SocketAddr>, NotFetched> {
        let port = url.port_or_known_default().filter(|port| may_be_port(*port));
        let port = port.ok_or(NotFetched::Port)?;
        let host = url.host_str().ok_or(NotFetched::NoAddress)?;
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let addresses = match literal {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) if is_private_name(host) => return Err(NotFetched::Private),
            Err(_) => self.look_up(host, port).await?,
        };
        if addresses.is_empty() {
            return Err(NotFetched::NoSuchName);
        }
        // One address that is refused refuses the name: whoever answers for it does not mean well.
        if addresses.len() > ADDRESSES_MAX || !addresses.iter().all(|address| self.may_be(*address)) {
            return Err(NotFetched::Private);
        }
        Ok(addresses)
    }

    async fn look_up(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, NotFetched> {
        match &self.names {
            Names::System => {
                let found = tokio::net::lookup_host((host, port)).await;
                Ok(found.map_err(|_| NotFetched::NoSuchName)?.take(ADDRESSES_MAX + 1).collect())
            }
            #[cfg(test)]
            Names::Fixed(names) => Ok(names.look_up(host, port)),
        }
    }

    fn may_be(&self, address: SocketAddr) -> bool {
        #[cfg(test)]
        if self.excepted.contains(&address) {
            return true;
        }
        is_public(address.ip())
    }
}

/// The web's ports, and those that anybody's service may have; below are mail, shells and other services that a request
/// could be made to talk to.
fn may_be_port(port: u16) -> bool {
    matches!(port, 80 | 443 | 1024..)
}

/// Names that mean something else in every network (RFC 6761, RFC 6762, RFC 8375), and those that the search list of this
/// machine's resolver would complete.
fn is_private_name(host: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let is_under = |domain: &str| host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    !host.contains('.') || ["localhost", "local", "internal", "home.arpa"].into_iter().any(is_under)
}

fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => is_public_v6(ip),
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    !matches!(
        ip.octets(),
        [0 | 10 | 127, ..] // this network, private, loopback
        | [100, 64..=127, ..] // carrier-grade NAT
        | [169, 254, ..] // link-local, with the metadata of clouds
        | [172, 16..=31, ..] // private
        | [192, 0, 0 | 2, _] // protocol assignments, documentation
        | [192, 88, 99, _] // 6to4 relays
        | [192, 168, ..] // private
        | [198, 18 | 19, ..] // benchmarks
        | [198, 51, 100, _] // documentation
        | [203, 0, 113, _] // documentation
        | [224..=255, ..] // multicast, reserved, broadcast
    )
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        is_public_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        // Ways to write or to reach an IPv4 address: mapped, through NAT64, 6to4.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        // Protocol assignments with Teredo and benchmarks; documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // All that is given to anybody. Outside are loopback, unspecified, compatible, local, site-local and multicast ones.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_may_be_fetched_from() {
        for refused in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.0.1",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.0.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:0:7f00:1::1",
            "2001:2::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a00:1::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "::ffff:0:127.0.0.1",
        ] {
            assert!(!is_public(refused.parse().expect("an address")), "{refused}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
            "2001:200::1",
            "3fff:1000::1",
            "::ffff:93.184.216.34",
            "64:ff9b::5db8:d822",
            "2002:5db8:d822::1",
        ] {
            assert!(is_public(public.parse().expect("an address")), "{public}");
        }
    }

    #[test]
    fn names_of_inner_networks_are_not_looked_up() {
        for private in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "router",
            "printer.local",
            "metadata.google.internal",
            "nas.home.arpa",
        ] {
            assert!(is_private_name(private), "{private}");
        }
        for public in
            ["example.org", "localhost.example.org", "mylocal.example", "internal.example.org", "notlocal.org"]
        {
            assert!(!is_private_name(public), "{public}");
        }
    }
}
