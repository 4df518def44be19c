//! tmp
/// Ended.
#[derive(Debug)]
pub struct Died;
