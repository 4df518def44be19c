//! What a lease puts on a request, and what the caller says about it: explicit arguments win.
