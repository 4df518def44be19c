//! Configuration items on disk, for starts without a server.
