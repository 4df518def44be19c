#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::*;

#[test]
fn the_sink_may_ask_for_more_within_reason() {
    let second = Duration::from_secs(1);
    for (own, asked, wait) in [(2, None, 2), (2, Some(7), 7), (9, Some(7), 9), (2, Some(9000), 300)] {
        assert_eq!(at_least(own * second, asked.map(|asked| asked * second)), wait * second, "{own} {asked:?}");
    }
}
