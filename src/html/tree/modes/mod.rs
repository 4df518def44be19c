//! The insertion modes, by the part of a page they are for.
