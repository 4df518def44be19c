//! Which policy holds where (wire contract, section 32): the endpoint group's own, else the client's, else the site's, else
//! the namespace's; where none is bound, the built-in one, which the caller has.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::PolicyError;
use super::head::Binding;
use super::read::label;
use super::{Head, Policy};

/// The bound policies of one kind.
#[derive(Debug, Clone)]
pub(crate) struct Bindings<T> {
    namespace: Option<T>,
    sites: BTreeMap<Arc<str>, Site<T>>,
}

/// How near a binding is to the endpoint group it was found for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Group,
    Client,
    Site,
    Namespace,
}

#[derive(Debug, Clone)]
struct Site<T> {
    own: Option<T>,
    clients: BTreeMap<Arc<str>, Client<T>>,
}

#[derive(Debug, Clone)]
struct Client<T> {
    own: Option<T>,
    groups: BTreeMap<Arc<str>, T>,
}

impl<T> Bindings<T> {
    /// Binds it, unless there is one at this place already: that one comes back.
    pub(crate) fn bind(&mut self, place: &Binding, policy: T) -> Result<(), &T> {
        let Some(site) = &place.site else { return put(&mut self.namespace, policy) };
        let site = self.sites.entry(Arc::clone(site)).or_insert_with(|| Site { own: None, clients: BTreeMap::new() });
        let Some(client) = &place.client else { return put(&mut site.own, policy) };
        let client = site.clients.entry(Arc::clone(client)).or_insert_with(|| Client { own: None, groups: BTreeMap::new() });
        let Some(group) = &place.group else { return put(&mut client.own, policy) };
        match client.groups.entry(Arc::clone(group)) {
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(policy);
                Ok(())
            }
            std::collections::btree_map::Entry::Occupied(taken) => Err(taken.into_mut()),
        }
    }

    /// The nearest one, and how near it is; `None` where the built-in one holds.
    pub(crate) fn find(&self, site: &str, client: &str, group: &str) -> Option<(&T, Reach)> {
        let site = self.sites.get(site);
        let client = site.and_then(|site| site.clients.get(client));
        let group = client.and_then(|client| client.groups.get(group));
        group
            .map(|policy| (policy, Reach::Group))
            .or_else(|| client?.own.as_ref().map(|policy| (policy, Reach::Client)))
            .or_else(|| site?.own.as_ref().map(|policy| (policy, Reach::Site)))
            .or_else(|| self.namespace.as_ref().map(|policy| (policy, Reach::Namespace)))
    }
}

impl<P: Policy> Bindings<Arc<P>> {
    /// All of one kind, each bound to the places it names itself.
    ///
    /// # Errors
    ///
    /// Two policies of one name, two bound to one place.
    pub(crate) fn of(policies: &[Arc<P>]) -> Result<Self, PolicyError> {
        let mut bindings = Self::default();
        let mut names = std::collections::BTreeSet::new();
        for policy in policies {
            let Head { name, bind, .. } = policy.head();
            if !names.insert(name) {
                return Err(PolicyError::SameName { policy: label(P::KIND, name), kind: P::KIND.name() });
            }
            for place in bind {
                bindings.bind(place, Arc::clone(policy)).map_err(|other| PolicyError::BoundTwice {
                    policy: label(P::KIND, name),
                    place: place.to_string(),
                    other: other.head().name.to_string(),
                    kind: P::KIND.name(),
                })?;
            }
        }
        Ok(bindings)
    }
}

impl<T> Default for Bindings<T> {
    fn default() -> Self {
        Self { namespace: None, sites: BTreeMap::new() }
    }
}

fn put<T>(slot: &mut Option<T>, policy: T) -> Result<(), &T> {
    match slot {
        Some(taken) => Err(taken),
        None => {
            *slot = Some(policy);
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::BreakerPolicy;
    use super::*;

    fn place(site: Option<&str>, client: Option<&str>, group: Option<&str>) -> Binding {
        Binding { site: site.map(Arc::from), client: client.map(Arc::from), group: group.map(Arc::from) }
    }

    #[test]
    fn the_nearest_binding_wins() {
        let mut bindings = Bindings::default();
        assert_eq!(bindings.find("shop", "web", "search"), None);
        for (at, number, reach) in [
            (place(None, None, None), 0, Reach::Namespace),
            (place(Some("shop"), None, None), 1, Reach::Site),
            (place(Some("shop"), Some("web"), None), 2, Reach::Client),
            (place(Some("shop"), Some("web"), Some("search")), 3, Reach::Group),
        ] {
            bindings.bind(&at, number).unwrap();
            assert_eq!(bindings.find("shop", "web", "search"), Some((&number, reach)));
            assert_eq!(bindings.bind(&at, 9), Err(&number), "one policy to a place");
        }
        assert_eq!(bindings.find("shop", "web", "other"), Some((&2, Reach::Client)));
        assert_eq!(bindings.find("shop", "app", "search"), Some((&1, Reach::Site)));
        assert_eq!(bindings.find("other", "web", "search"), Some((&0, Reach::Namespace)));
    }

    #[test]
    fn a_place_or_a_name_taken_twice_names_both_policies() {
        let policy = |text: &str| Arc::new(serde_json::from_str::<BreakerPolicy>(text).unwrap());
        let one = policy(r#"{"name":"one","bind":[{},{"site":"shop","client":"web","endpoint_group":"_default"}]}"#);
        let other = policy(r#"{"name":"other","bind":{"site":"shop","client":"web","endpoint_group":"_default"}}"#);
        let bindings = Bindings::of(&[Arc::clone(&one)]).unwrap();
        assert_eq!(bindings.find("shop", "web", "_default").unwrap().1, Reach::Group);
        assert_eq!(bindings.find("else", "web", "_default").unwrap().1, Reach::Namespace);
        assert_eq!(
            Bindings::of(&[Arc::clone(&one), other]).unwrap_err().to_string(),
            "breaker policy \"other\": bind names shop/web/_default, where \"one\" is bound already; \
             bind one breaker policy to a place"
        );
        assert_eq!(
            Bindings::of(&[Arc::clone(&one), one]).unwrap_err().to_string(),
            "breaker policy \"one\": another breaker policy has this name; names are unique within a kind"
        );
    }
}
