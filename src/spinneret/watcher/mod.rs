//! Configuration that follows the server.
