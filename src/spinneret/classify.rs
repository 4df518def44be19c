//! How a failed request of any HTTP library is named in a report.
