//! Credentials as the crawl uses them, made once and shared by all leases of an identity.

use std::collections::HashMap;
use std::sync::Arc;

use crate::plane::grants::credential;
use crate::plane::model::authority::spelled;
use crate::plane::model::render;
use crate::plane::{Credential, IdentityKey};

/// What was made, by the model's keys of site and identity. An identity of a file never becomes another one, so it holds as
/// many as the file has identities.
#[derive(Default)]
pub(super) struct Credentials(HashMap<(u32, u32), Made>);

struct Made {
    of: Arc<render::Credential>,
    credential: Arc<Credential>,
    /// A person was told that not all of it can be used.
    is_warned: bool,
}

impl Credentials {
    /// What the identity puts on a request. It is the same as before unless the model renders it otherwise.
    pub(super) fn of(&mut self, place: (u32, u32), of: Arc<render::Credential>, identity: &IdentityKey) -> Arc<Credential> {
        let known = self.0.get(&place);
        if let Some(known) = known.filter(|known| Arc::ptr_eq(&known.of, &of) || known.of == of) {
            return Arc::clone(&known.credential);
        }
        let (credential, left_out) = credential::read(&spelled(render::Credential::clone(&of)));
        let is_warned = left_out.warn(identity, known.is_some_and(|known| known.is_warned));
        let credential = Arc::new(credential);
        self.0.insert(place, Made { of, credential: Arc::clone(&credential), is_warned });
        credential
    }
}
