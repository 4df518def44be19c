//! Files that are not pages, by the end of their names.

/// Extensions of files that hold no links: images, sound, film, office documents, archives, programs, fonts, styles.
pub const IGNORED_EXTENSIONS: &[&str] = &[
    // images
    "mng", "pct", "bmp", "gif", "jpg", "jpeg", "png", "pst", "psp", "tif", "tiff", "ai", "drw", "dxf", "eps", "ps", "svg", "cdr",
    "ico", "webp", "avif", "heic", "psd", // sound
    "mp3", "wma", "ogg", "oga", "wav", "ra", "aac", "mid", "au", "aiff", "flac", "m4a", "opus", // film
    "3gp", "asf", "asx", "avi", "mov", "mp4", "mpg", "mpeg", "qt", "rm", "swf", "wmv", "m4v", "flv", "webm", "mkv",
    "ogv", // documents
    "xls", "xlsm", "xlsx", "xltm", "xltx", "potm", "potx", "ppt", "pptm", "pptx", "pps", "doc", "docb", "docm", "docx", "dotm",
    "dotx", "odt", "ods", "odg", "odp", "pdf", "rtf", "epub", "mobi", // archives and disk images
    "7z", "7zip", "bz2", "rar", "tar", "tar.gz", "tgz", "gz", "xz", "zst", "zip", "jar", "cab", "iso", "dmg",
    "img", // programs and packages
    "apk", "ipa", "bin", "exe", "msi", "msu", "deb", "rpm", // styles, scripts, fonts
    "css", "js", "woff", "woff2", "ttf", "otf", "eot",
];

/// A set of extensions, asked for every link of every page.
#[derive(Clone, Debug, Default)]
pub(super) struct Extensions {
    /// Those of one part and at most eight bytes, as numbers, sorted.
    short: Vec<u64>,
    /// The others, in lower case.
    long: Vec<String>,
}

impl Extensions {
    /// From extensions in any case, with or without a dot in front.
    pub(super) fn of<S: AsRef<str>>(extensions: impl IntoIterator<Item = S>) -> Self {
        let mut set = Self::default();
        for extension in extensions {
            let extension = extension.as_ref().trim_start_matches('.');
            match packed(extension).filter(|_| !extension.contains('.')) {
                Some(short) => set.short.push(short),
                None => set.long.push(extension.to_ascii_lowercase()),
            }
        }
        set.short.sort_unstable();
        set
    }

    /// Whether the file name in a path ends in one of them.
    pub(super) fn has(&self, path: &str) -> bool {
        let file = path.rsplit('/').next().unwrap_or_default();
        let Some((_, last)) = file.rsplit_once('.') else {
            return false;
        };
        packed(last).is_some_and(|short| self.short.binary_search(&short).is_ok())
            || self.long.iter().any(|extension| ends_in(file, extension))
    }
}

/// A text of one to eight bytes in lower case, as a number.
fn packed(text: &str) -> Option<u64> {
    let is_short = (1..=8).contains(&text.len());
    is_short.then(|| text.bytes().fold(0, |number, byte| number << 8 | u64::from(byte.to_ascii_lowercase())))
}

/// Whether a file name ends in an extension, which may have several parts (`tar.gz`).
fn ends_in(file: &str, extension: &str) -> bool {
    let stem = file.len().checked_sub(extension.len()).and_then(|at| file.split_at_checked(at));
    stem.is_some_and(|(stem, end)| stem.ends_with('.') && end.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_ends_in_an_extension_of_any_length_and_case() {
        let set = Extensions::of(["pdf", ".TAR.GZ", "averylongone", "é"]);
        for (path, expected) in [
            ("/a.pdf", true),
            ("/a.PDF", true),
            ("/b.pdf/a", false),
            ("/pdf", false),
            ("/a.xpdf", false),
            ("/a.pd", false),
            ("/a.tar.gz", true),
            ("/a.gz", false),
            ("/tar.gz", false),
            ("/a.AVeryLongOne", true),
            ("/a.", false),
            ("", false),
            ("/.pdf", true),
        ] {
            assert_eq!(set.has(path), expected, "{path}");
        }
        assert!(!Extensions::default().has("/a.pdf"));
        assert!(IGNORED_EXTENSIONS.iter().all(|extension| Extensions::of(IGNORED_EXTENSIONS).has(&format!("/x.{extension}"))));
    }
}
