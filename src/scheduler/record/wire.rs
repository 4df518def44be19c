//! Flags and tags of a record: numbers that are never given another meaning.

/// It fetches robots.txt.
pub(super) const ROBOTS: u64 = 1;
/// A parent's id follows the job's.
pub(super) const PARENT: u64 = 1 << 1;
/// A not-before time follows.
pub(super) const LATER: u64 = 1 << 2;
/// It passes the duplicate filter.
pub(super) const UNFILTERED: u64 = 1 << 3;
/// It holds rare fields, be they at their defaults.
pub(super) const EXTRA: u64 = 1 << 4;
/// It keeps its page's lease.
pub(super) const KEEP_LEASE: u64 = 1 << 5;
/// Its redirects go to the callback.
pub(super) const NO_REDIRECT: u64 = 1 << 6;
/// robots.txt is not asked.
pub(super) const IGNORE_ROBOTS: u64 = 1 << 7;
/// It may leave the allowed domains.
pub(super) const ALLOW_OFFSITE: u64 = 1 << 8;
/// All of them.
pub(super) const KNOWN: u64 = (1 << 9) - 1;

/// The page's URL: how many bytes it shares with the request's from the start, then the rest.
pub(super) const PARENT_URL: u8 = 1;
/// Attempts, as a number.
pub(super) const ATTEMPTS: u8 = 2;
/// Hops, as a number.
pub(super) const HOPS: u8 = 3;
/// Seen keys of the redirect chain.
pub(super) const CHAIN: u8 = 4;
/// The first URL, as the page's.
pub(super) const FIRST_URL: u8 = 5;
/// The method's name, unless it is GET.
pub(super) const METHOD: u8 = 6;
/// Names and values; a value's length is doubled, plus one when it is marked as sensitive.
pub(super) const HEADERS: u8 = 7;
/// Names and values.
pub(super) const COOKIES: u8 = 8;
/// The body's bytes.
pub(super) const BODY: u8 = 9;
/// A MessagePack map; empty when it nested too deep to be written.
pub(super) const META: u8 = 10;
/// Levels of it, its own included: what nests deeper would take more stack than a thread has. Readers of JSON stop there too.
pub(super) const META_LEVELS: usize = 128;
/// Seconds and nanoseconds.
pub(super) const TIMEOUT: u8 = 11;
/// A number.
pub(super) const RETRIES: u8 = 12;
/// Site and client.
pub(super) const LEASE: u8 = 13;
/// A text.
pub(super) const SESSION_KEY: u8 = 14;
/// Status codes; none stands for all.
pub(super) const STATUSES: u8 = 15;
/// Tags up to this one are in version 1.
pub(super) const LAST_OF_1: u8 = STATUSES;
/// A byte: the number of a referrer policy, from 0, plus [`OWN`] where the spider said so itself. Since version 2.
pub(super) const REFERRING: u8 = 16;
/// Added to the number of a policy.
pub(super) const OWN: u8 = 0x80;
/// A number of bytes.
pub(super) const MAX_BYTES: u8 = 18;
/// Nothing: that it is there says that the request passes the HTTP cache.
pub(super) const DONT_CACHE: u8 = 17;
