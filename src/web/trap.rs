//! Paths that go round in circles: what a site makes of a wrong relative link, page after page, without end.

use url::Url;

/// Longest circle that is looked for, in segments. Longer ones are met by the limits of length and depth.
const LONGEST: usize = 16;

/// How often in a row one segment, or one sequence of at most 16, stands in the URL's path: `/a/b` has 1, `/a/a` has 2,
/// `/x/a/b/a/b/a/b/y` has 3. Segments without a character do not count. Takes at most 16 looks at each segment.
#[must_use]
pub fn segment_repeats(url: &Url) -> usize {
    let Some(segments) = url.path_segments() else { return 0 };
    let segments: Vec<&str> = segments.filter(|segment| !segment.is_empty()).collect();
    let mut most = usize::from(!segments.is_empty());
    for period in 1..=LONGEST.min(segments.len() / 2) {
        // Of a run in which every segment equals the one a period before it.
        let mut run = 0;
        for (ahead, behind) in segments.iter().skip(period).zip(&segments) {
            run = if ahead == behind { run + 1 } else { 0 };
            most = most.max(run / period + 1);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn repeats(path: &str) -> usize {
        segment_repeats(&Url::parse(&format!("http://a.test{path}")).unwrap())
    }

    #[test]
    fn repeats_are_counted_in_a_row_for_one_segment_and_for_several() {
        for (path, expected) in [
            ("", 0),
            ("/", 0),
            ("//", 0),
            ("/a", 1),
            ("/a/b/c", 1),
            ("/a/a", 2),
            ("/a/b/a", 1),
            ("/a/b/a/b", 2),
            ("/x/a/b/a/b/a/b/y", 3),
            ("/a/a/a/a/", 4),
            ("/a//a/a", 3),
            ("/a/b/a/c/a/d", 1),
            ("/aa/a", 1),
            ("/a/A", 1),
            ("/a/b/c/a/b/c/a/b/c/a/b", 3),
            ("/p?x=/a/a/a/a", 1),
        ] {
            assert_eq!(repeats(path), expected, "{path}");
        }
        assert_eq!(segment_repeats(&Url::parse("mailto:a@a.test").unwrap()), 0);
    }

    proptest! {
        #[test]
        fn a_circle_is_found_whatever_comes_before_it(
            before in prop::collection::vec("[a-m]{1,3}", 0..6), circle in prop::collection::vec("[n-z]{1,3}", 1..=16), times in 1..8_usize,
        ) {
            let round = circle.join("/");
            let path = format!("/{}/{}", before.join("/"), vec![round; times].join("/"));
            prop_assert!(repeats(&path) >= times);
        }

        #[test]
        fn any_url_has_an_answer(path in "(/[ab]{0,2}){0,40}") {
            prop_assert!(repeats(&path) <= 40);
        }
    }
}
