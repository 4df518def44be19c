//! What the elements of a sitemap or feed are for: entries, the fields of them, and what is passed over.
//!
//! Names only; which element is which is decided by the reader of the markup.

use super::Target;

/// What an element is here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Root,
    /// `<channel>` of RSS.
    Channel,
    Entry(Target),
    Image,
    Video,
    News,
    Publication,
    Field(Field),
    /// With a namespace of its own, so that nothing inside counts.
    Foreign,
    Other,
}

/// An element whose text is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Loc,
    Lastmod,
    /// A date that counts if there is no better one.
    Published,
    Changefreq,
    Priority,
    Guid,
    ImageLoc,
    VideoThumbnail,
    VideoTitle,
    VideoContent,
    VideoPlayer,
    NewsName,
    NewsLanguage,
    NewsDate,
    NewsTitle,
}

/// Which extension an element belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    Own,
    Image,
    Video,
    News,
    Other,
}
