//! The feeds of a job, from `-o` and `-O` or else from `FEEDS`.

use super::exit::CliError;
use crate::api::args::Arguments;
use crate::export::{Empty, Encoding, Existing, FeedOptions, Layout, Target};
use crate::settings::{FeedEncoding, Settings};

/// Settles where items are written. Feeds of the command line stand in for those of the settings.
///
/// # Errors
/// [`CliError::Usage`] for an unknown format or placeholder, and for one place given twice.
pub(crate) fn feeds(
    settings: &Settings,
    given: Option<Vec<(Target, Existing)>>,
    spider: &str,
    arguments: &Arguments,
) -> Result<Vec<(Target, FeedOptions)>, CliError> {
    let targets = match given {
        Some(targets) => targets,
        None => of_settings(settings, spider, arguments)?,
    };
    let mut feeds: Vec<(Target, FeedOptions)> = Vec::new();
    for (target, existing) in targets {
        if feeds.iter().any(|(other, _)| other.place == target.place) {
            let place = match &target.place {
                crate::export::Place::File(path) => path.display().to_string(),
                crate::export::Place::Stdout => "standard output".to_owned(),
            };
            return Err(CliError::usage(format!("two feeds go to {place}; give each a place of its own")));
        }
        feeds.push((target, options(settings, existing)));
    }
    Ok(feeds)
}

fn of_settings(settings: &Settings, spider: &str, arguments: &Arguments) -> Result<Vec<(Target, Existing)>, CliError> {
    let started = jiff::Timestamp::now().strftime("%Y-%m-%dT%H-%M-%S+00-00").to_string();
    settings
        .feeds
        .iter()
        .map(|feed| {
            let mut text = fill(&feed.uri, spider, &started, arguments)?;
            if let Some(format) = &feed.format {
                text = format!("{text}:{format}");
            }
            let target = Target::parse(&text).map_err(|error| CliError::usage(format!("setting FEEDS: {error}")))?;
            Ok((target, if feed.overwrite { Existing::Overwrite } else { Existing::Append }))
        })
        .collect()
}

/// Replaces `%(name)s`, `%(time)s` and `%(ARGUMENT)s`.
fn fill(uri: &str, spider: &str, started: &str, arguments: &Arguments) -> Result<String, CliError> {
    let mut out = String::with_capacity(uri.len());
    let mut rest = uri;
    while let Some((before, after)) = rest.split_once("%(") {
        let Some((name, tail)) = after.split_once(")s") else { break };
        out.push_str(before);
        match name {
            "name" => out.push_str(spider),
            "time" => out.push_str(started),
            // An argument is not a path: it must not leave the folder.
            _ => match arguments.get(name) {
                Some(value) => out.push_str(&value.replace(['/', '\\'], "_")),
                None => {
                    return Err(CliError::usage(format!(
                        "setting FEEDS: {uri:?} has the placeholder %({name})s; allowed: %(name)s, %(time)s and the arguments given with -a"
                    )));
                }
            },
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

fn options(settings: &Settings, existing: Existing) -> FeedOptions {
    FeedOptions {
        encoding: match settings.feed_export_encoding {
            FeedEncoding::AsciiEscaped => Encoding::Ascii,
            FeedEncoding::Utf8 => Encoding::Utf8,
        },
        fields: (!settings.feed_export_fields.is_empty()).then(|| settings.feed_export_fields.clone()),
        layout: match u8::try_from(settings.feed_export_indent) {
            Ok(0) => Layout::ItemPerLine,
            indent => Layout::Indented(indent.unwrap_or(u8::MAX)),
        },
        empty: if settings.feed_store_empty { Empty::Store } else { Empty::Omit },
        existing,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;
    use crate::export::{Format, Place};
    use crate::settings::Feed;

    fn with(feeds: &[(&str, Option<&str>, bool)]) -> Settings {
        let feeds = feeds.iter().map(|(uri, format, overwrite)| Feed {
            uri: (*uri).to_owned(),
            format: format.map(str::to_owned),
            overwrite: *overwrite,
        });
        Settings { feeds: feeds.collect(), ..Settings::default() }
    }

    fn arguments() -> Arguments {
        [("shelf".to_owned(), "a/../b".to_owned())].into()
    }

    #[test]
    fn feeds_of_the_settings_have_their_placeholders_filled() {
        let settings = with(&[("out/%(name)s-%(shelf)s.txt", Some("csv"), true), ("%(time)s.jsonl", None, false)]);
        let feeds = feeds(&settings, None, "shop", &arguments()).unwrap();
        assert_eq!(feeds[0].0, Target { place: Place::File("out/shop-a_.._b.txt".into()), format: Format::Csv });
        assert_eq!(feeds[0].1.existing, Existing::Overwrite);
        let Place::File(path) = &feeds[1].0.place else { panic!() };
        assert_eq!(path.to_string_lossy().len(), "2026-11-30T19-40-19+00-00.jsonl".len());
        assert_eq!(feeds[1].1.existing, Existing::Append);
    }

    #[test]
    fn feeds_of_the_call_stand_in_for_those_of_the_settings() {
        let given = vec![(Target::parse("-").unwrap(), Existing::Append)];
        let feeds = feeds(&with(&[("a.csv", None, false)]), Some(given), "shop", &arguments()).unwrap();
        assert_eq!(feeds.len(), 1);
        assert_eq!(feeds[0].0.place, Place::Stdout);
    }

    #[test]
    fn a_wrong_feed_is_named() {
        for (uri, parts) in
            [("a.parquet", &["FEEDS", "\"parquet\"", "jsonl"][..]), ("%(color)s.csv", &["FEEDS", "%(color)s", "%(time)s"])]
        {
            let error = feeds(&with(&[(uri, None, false)]), None, "shop", &arguments()).unwrap_err();
            assert_eq!(error.code(), 64);
            assert!(parts.iter().all(|part| error.to_string().contains(part)), "{error}");
        }
        let twice = with(&[("a.csv", None, false), ("a.csv", Some("json"), false)]);
        assert!(feeds(&twice, None, "shop", &arguments()).unwrap_err().to_string().contains("two feeds go to a.csv"));
    }
}
