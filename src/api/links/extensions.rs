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

/// Whether the file name in a path ends in one of these extensions (in lower case, without a dot in front).
pub(super) fn has_extension(path: &str, extensions: &[String]) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    let Some((_, last)) = file.rsplit_once('.') else {
        return false;
    };
    extensions.iter().any(|extension| {
        // An extension of two parts, such as `tar.gz`, is compared with the end of the file name.
        last.eq_ignore_ascii_case(extension) || (extension.contains('.') && ends_in(file, extension))
    })
}

fn ends_in(file: &str, extension: &str) -> bool {
    let stem = file.len().checked_sub(extension.len()).and_then(|at| file.split_at_checked(at));
    stem.is_some_and(|(stem, end)| stem.ends_with('.') && end.eq_ignore_ascii_case(extension))
}
