//! The same client for plain threads.
