//! A step: a callback's name and its typed arguments, in one serde value that is stored with the request.
//!
//! The encoding is MessagePack with names (`rmp_serde::to_vec_named`), so that fields may be added or
//! reordered between versions of a spider without losing queued requests.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What a spider's step type must be; implemented for every fitting type.
pub trait Step: Serialize + DeserializeOwned + Clone + fmt::Debug + Send + 'static {}

impl<T: Serialize + DeserializeOwned + Clone + fmt::Debug + Send + 'static> Step for T {}

/// An encoded step. Cloning shares the bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct StepData(Arc<[u8]>);

impl StepData {
    /// Encodes a step.
    ///
    /// # Errors
    /// The serialiser's words, when the value cannot be written.
    pub(crate) fn encode(step: &impl Serialize) -> Result<Self, String> {
        thread_local!(static BUFFER: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) });
        BUFFER.with_borrow_mut(|buffer| {
            buffer.clear();
            let mut writer = rmp_serde::Serializer::new(&mut *buffer).with_struct_map();
            step.serialize(&mut writer).map_err(|e| e.to_string())?;
            Ok(Self(Arc::from(buffer.as_slice())))
        })
    }

    /// Decodes the step.
    ///
    /// # Errors
    /// When the bytes are not a value of `S`: the spider has changed since the request was queued.
    pub(crate) fn decode<S: DeserializeOwned>(&self) -> Result<S, String> {
        rmp_serde::from_slice(&self.0).map_err(|e| e.to_string())
    }

    /// Wraps bytes that were written by [`StepData::encode`].
    pub(crate) fn from_bytes(bytes: &[u8]) -> Self {
        Self(Arc::from(bytes))
    }

    /// The callback's name (the enum variant), or `-` for a step that is not an enum.
    #[must_use]
    pub fn name(&self) -> String {
        match rmp_serde::from_slice::<serde_json::Value>(&self.0) {
            Ok(serde_json::Value::String(name)) => name,
            Ok(serde_json::Value::Object(map)) if map.len() == 1 => map.keys().next().cloned().unwrap_or_default(),
            _ => "-".to_owned(),
        }
    }

    /// The bytes as they are stored.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for StepData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// Declares a spider's steps: an enum with one variant per callback, and `dispatch`, which calls it.
///
/// ```
/// use dragline::prelude::*;
///
/// steps! {
///     pub enum Step for Shop {
///         Listing { page: u32 } => listing,
///         About => about,
///     }
/// }
/// # #[derive(Deserialize)] struct Shop;
/// # impl Spider for Shop {
/// #     const NAME: &'static str = "shop"; type Step = Step; type Item = Value;
/// #     async fn start(&self, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
/// #     async fn parse(&self, step: Step, response: Response, out: &mut Out<Self>) -> CallbackResult { self.dispatch(step, response, out).await }
/// # }
/// # impl Shop {
/// #     async fn listing(&self, _: Response, _: &mut Out<Self>, _page: u32) -> CallbackResult { Ok(()) }
/// #     async fn about(&self, _: Response, _: &mut Out<Self>) -> CallbackResult { Ok(()) }
/// # }
/// ```
///
/// A variant's fields become the callback's last arguments, in order. A callback that does not exist is a
/// compile error. The enum derives serde's traits, `Debug`, `Clone` and `PartialEq`.
#[macro_export]
macro_rules! steps {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident for $spider:ty {
            $( $(#[$vmeta:meta])* $variant:ident $({ $($field:ident : $ftype:ty),* $(,)? })? => $callback:ident ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, $crate::serde::Serialize, $crate::serde::Deserialize)]
        #[serde(crate = "dragline::serde")]
        #[allow(missing_docs, reason = "a callback's own docs say it")]
        $vis enum $name {
            $( $(#[$vmeta])* $variant $({ $($field: $ftype),* })? ),+
        }

        impl $spider {
            /// Calls the callback of `step`.
            $vis async fn dispatch(
                &self,
                step: $name,
                response: $crate::api::Response,
                out: &mut $crate::api::Out<Self>,
            ) -> $crate::api::CallbackResult {
                match step {
                    $( $name::$variant $({ $($field),* })? => self.$callback(response, out $($(, $field)*)?).await ),+
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum Old {
        Listing { page: u32 },
        Gone,
    }

    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    enum New {
        Listing {
            #[serde(default)]
            sort: String,
            page: u32,
        },
    }

    #[test]
    fn a_step_survives_added_and_reordered_fields() {
        let data = StepData::encode(&Old::Listing { page: 3 }).unwrap();
        assert_eq!(data.decode::<New>().unwrap(), New::Listing { sort: String::new(), page: 3 });
    }

    #[test]
    fn a_removed_step_is_an_error_not_a_panic() {
        let data = StepData::encode(&Old::Gone).unwrap();
        assert!(data.decode::<New>().is_err());
        assert_eq!(data.name(), "Gone");
    }

    #[test]
    fn the_encoding_is_stable() {
        let data = StepData::encode(&Old::Listing { page: 3 }).unwrap();
        assert_eq!(data, StepData::from_bytes(b"\x81\xa7Listing\x81\xa4page\x03"));
        assert_eq!(data.name(), "Listing");
    }
}
