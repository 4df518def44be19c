//! What one setting is, and the macro that turns the table of settings into code.
//!
//! The macro is the only place where a field, its key, its rule and its default meet; the struct,
//! the key list, the reader and the comparison are generated from it and cannot drift apart.

use serde_json::Value;

use super::rule::Problem;

/// When a new value of a key takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reload {
    /// A change of the settings file, or of a config item, is applied to the running crawl.
    Live,
    /// The value is read once at start; a change needs a restart.
    Restart,
}

/// One setting as the program knows it: name, type, default, meaning and its parser.
#[derive(Clone, Debug)]
pub struct Key {
    pub(crate) name: &'static str,
    pub(crate) section: &'static str,
    pub(crate) doc: String,
    pub(crate) kind: &'static str,
    pub(crate) allowed: String,
    pub(crate) default: Value,
    pub(crate) reload: Reload,
    pub(crate) check: fn(&Value) -> Result<(), Problem>,
    pub(crate) convert: fn(&str) -> Value,
    pub(crate) show: fn(&Value) -> Value,
}

impl Key {
    /// The name as it is written everywhere, for example `CONCURRENT_REQUESTS`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The heading the key is listed under.
    pub fn section(&self) -> &'static str {
        self.section
    }

    /// The meaning, with units and bounds; may hold several lines.
    pub fn doc(&self) -> &str {
        &self.doc
    }

    /// The type in one or two words, for example `integer` or `seconds`.
    pub fn type_text(&self) -> &'static str {
        self.kind
    }

    /// The values the key takes, as error messages say it.
    pub fn allowed(&self) -> &str {
        &self.allowed
    }

    /// The default as it would stand in a TOML file; `not set` where no text there means that.
    pub fn default_text(&self) -> String {
        self.default_toml().unwrap_or_else(|| "not set".to_owned())
    }

    /// The default for a TOML file. A setting that may be left out but not be empty has none.
    pub(crate) fn default_toml(&self) -> Option<String> {
        let text = super::template::toml_text(&self.default);
        let is_no_value = self.default.is_null() && (self.check)(&Value::from("")).is_err();
        (!is_no_value).then_some(text)
    }

    /// Whether a change of the settings file or of a config item reaches the running crawl.
    pub fn reload(&self) -> Reload {
        self.reload
    }
}

/// Generates [`Settings`](super::Settings) from rows of
/// `"KEY" Reload field: Type = rule, default;`, each under a section and with its doc lines.
macro_rules! settings_table {
    ($( $section:literal {
        $( $(#[doc = $doc:literal])+
           $key:literal $reload:ident $field:ident : $ty:ty = $rule:expr, $default:expr; )+
    } )+) => {
        /// Every setting, typed and within its range.
        ///
        /// One field per key, named like the key in lower case. Share it as `Arc<Settings>`.
        /// [`Settings::default`] holds the built-in defaults; [`Layers`](super::Layers) builds it
        /// from files, the environment and the command line. Its `Debug` shows no secret.
        #[derive(Clone, PartialEq)]
        pub struct Settings {
            $($( $(#[doc = $doc])+ pub $field: $ty, )+)+
            /// Keys whose values came from secrets, in the order of the table.
            #[doc(hidden)]
            pub from_secrets: Vec<&'static str>,
        }

        impl std::fmt::Debug for Settings {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut shown = f.debug_struct("Settings");
                $($( if self.from_secrets.contains(&$key) {
                    shown.field(stringify!($field), &format_args!("{REDACTED}"));
                } else {
                    shown.field(stringify!($field), &self.$field);
                } )+)+
                shown.finish()
            }
        }

        static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| vec![
            $($( Key {
                name: $key,
                section: $section,
                doc: [$($doc.trim()),+].join("\n"),
                kind: $rule.kind(),
                allowed: $rule.allowed(),
                default: $default,
                reload: Reload::$reload,
                check: |value| $rule.read(value).map(|_| ()),
                convert: |text| $rule.convert(text),
                show: |value| $rule.show(value),
            }, )+)+
        ]);

        impl Settings {
            /// Reads all keys through `get`, which gives the winning value of a key; a key without
            /// one takes its default.
            ///
            /// # Errors
            /// Every key whose value its rule refuses.
            pub(crate) fn read<'a>(
                get: impl Fn(&str) -> Option<&'a Value>,
            ) -> Result<Self, Vec<(&'static str, Problem)>> {
                let mut problems = Vec::new();
                $($( let $field = match get($key) {
                    Some(value) => $rule.read(value),
                    None => $rule.read(&$default),
                }
                .map_err(|problem| problems.push(($key, problem)))
                .ok(); )+)+
                let whole = || Some(Self { $($( $field: $field?, )+)+ from_secrets: Vec::new() });
                whole().ok_or(problems)
            }

            /// These settings with the live keys taken from `newer`, as after a reload.
            pub fn with_live_of(&self, newer: &Self) -> Self {
                Self {
                    $($( $field: match Reload::$reload {
                        Reload::Live => newer.$field.clone(),
                        Reload::Restart => self.$field.clone(),
                    }, )+)+
                    from_secrets: KEYS
                        .iter()
                        .filter(|key| match key.reload {
                            Reload::Live => newer.from_secrets.contains(&key.name),
                            Reload::Restart => self.from_secrets.contains(&key.name),
                        })
                        .map(|key| key.name)
                        .collect(),
                }
            }

            /// Names of the keys that differ, with their kind, in the order of the table.
            pub(crate) fn differing(&self, other: &Self) -> Vec<(&'static str, Reload)> {
                let mut differing = Vec::new();
                $($( if self.$field != other.$field {
                    differing.push(($key, Reload::$reload));
                } )+)+
                differing
            }
        }
    };
}
pub(crate) use settings_table;
