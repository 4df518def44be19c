//! What a spider author touches. No engine, actor or parser type appears in a signature here.

pub mod links;
pub mod selector;
