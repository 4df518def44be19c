//! The least page that still fails.

/// Takes out pieces, and then letters, as long as `fails` holds for what is left. `fails` holds for the whole.
pub(super) fn shrink(pieces: Vec<String>, fails: impl Fn(&str) -> bool) -> String {
    let page = without_needless(pieces, &fails).concat();
    without_needless(page.chars().map(String::from).collect(), &fails).concat()
}

/// Takes out ever smaller runs, until no single one can go.
fn without_needless(mut pieces: Vec<String>, fails: &impl Fn(&str) -> bool) -> Vec<String> {
    let mut run = pieces.len().div_ceil(2).max(1);
    loop {
        let mut is_smaller = false;
        let mut at = 0;
        while at < pieces.len() {
            let end = (at + run).min(pieces.len());
            let rest: Vec<String> = pieces[..at].iter().chain(&pieces[end..]).cloned().collect();
            if fails(&rest.concat()) {
                pieces = rest;
                is_smaller = true;
            } else {
                at = end;
            }
        }
        if run > 1 {
            run = run.div_ceil(2);
        } else if !is_smaller {
            return pieces;
        }
    }
}

#[test]
fn what_is_left_is_what_is_needed() {
    let pieces = ["one", "<b>", "two", "<i x=y>", "three", "</b>", "four"].map(str::to_owned).to_vec();
    let fails = |page: &str| page.contains("<b>") && page.contains("</b>") && page.contains('y');
    assert_eq!(shrink(pieces, fails), "<b>y</b>");
}
