//! Texts as small numbers: kinds, tags, providers and regions of proxies.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plane::model::proxy_pool::Symbol;

/// Every text once; 0 is the empty one.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<Arc<str>, Symbol>);

impl Names {
    /// The number of this text, a new one when it was not seen before.
    pub(super) fn symbol(&mut self, text: &str) -> Symbol {
        if text.is_empty() {
            return 0;
        }
        if let Some(symbol) = self.0.get(text) {
            return *symbol;
        }
        let symbol = u32::try_from(self.0.len() + 1).unwrap_or(u32::MAX);
        self.0.insert(text.into(), symbol);
        symbol
    }
}
