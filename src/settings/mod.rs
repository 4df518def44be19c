//! tmp
/// Settings.
#[derive(Debug, Clone)]
pub struct Settings;
