//! tmp
/// Rules.
#[derive(Debug)]
pub struct Robots;
