//! What the standard's lists say about an HTML element, as bits of one number (WHATWG HTML 13.2.4.2, 13.2.4.3, 13.2.6.3,
//! 13.2.6.5).

use super::NameId;
use super::table::{self, *};

/// A set of the standard's lists.
pub(crate) type Category = u16;

/// "Special" (13.2.4.2).
pub(crate) const SPECIAL: Category = 1;
/// Ends "has an element in scope".
pub(crate) const SCOPE: Category = 1 << 1;
/// Ends "has an element in list item scope".
pub(crate) const LIST_SCOPE: Category = 1 << 2;
/// Ends "has an element in button scope".
pub(crate) const BUTTON_SCOPE: Category = 1 << 3;
/// Ends "has an element in table scope".
pub(crate) const TABLE_SCOPE: Category = 1 << 4;
/// Popped by "generate implied end tags" (13.2.6.3).
pub(crate) const IMPLIED_END: Category = 1 << 5;
/// Popped by "generate all implied end tags thoroughly".
pub(crate) const IMPLIED_END_THOROUGH: Category = 1 << 6;
/// `h1` to `h6`.
pub(crate) const HEADING: Category = 1 << 7;
/// `table`, `tbody`, `tfoot`, `thead`, `tr`: where misplaced content is foster parented.
pub(crate) const TABLE_CONTEXT: Category = 1 << 8;
/// A start tag that leaves SVG and MathML (13.2.6.5).
pub(crate) const BREAKOUT: Category = 1 << 9;
/// "Formatting" (13.2.4.2).
pub(crate) const FORMATTING: Category = 1 << 10;
/// Void elements (13.1.2): nothing is inside of them.
pub(crate) const VOID: Category = 1 << 11;

/// The lists an HTML element of this name is in.
#[inline]
pub(crate) fn category(name: NameId) -> Category {
    CATEGORIES.get(name.0 as usize).copied().unwrap_or(0)
}

static CATEGORIES: [Category; table::COUNT] = categories();

const fn add(mut all: [Category; table::COUNT], names: &[NameId], what: Category) -> [Category; table::COUNT] {
    let mut i = 0;
    while i < names.len() {
        #[allow(clippy::indexing_slicing, reason = "at compile time")]
        {
            all[names[i].0 as usize] |= what;
        }
        i += 1;
    }
    all
}

const fn categories() -> [Category; table::COUNT] {
    let all = [0; table::COUNT];
    let all = add(
        all,
        &[
            ADDRESS, APPLET, AREA, ARTICLE, ASIDE, BASE, BASEFONT, BGSOUND, BLOCKQUOTE, BODY, BR, BUTTON, CAPTION, CENTER, COL,
            COLGROUP, DD, DETAILS, DIR, DIV, DL, DT, EMBED, FIELDSET, FIGCAPTION, FIGURE, FOOTER, FORM, FRAME, FRAMESET, H1, H2,
            H3, H4, H5, H6, HEAD, HEADER, HGROUP, HR, HTML, IFRAME, IMG, INPUT, KEYGEN, LI, LINK, LISTING, MAIN, MARQUEE, MENU,
            META, NAV, NOEMBED, NOFRAMES, NOSCRIPT, OBJECT, OL, P, PARAM, PLAINTEXT, PRE, SCRIPT, SEARCH, SECTION, SELECT,
            SOURCE, STYLE, SUMMARY, TABLE, TBODY, TD, TEMPLATE, TEXTAREA, TFOOT, TH, THEAD, TITLE, TR, TRACK, UL, WBR, XMP,
        ],
        SPECIAL,
    );
    let scope = [APPLET, CAPTION, HTML, TABLE, TD, TH, MARQUEE, OBJECT, SELECT, TEMPLATE];
    let all = add(all, &scope, SCOPE | LIST_SCOPE | BUTTON_SCOPE);
    let all = add(all, &[OL, UL], LIST_SCOPE);
    let all = add(all, &[BUTTON], BUTTON_SCOPE);
    let all = add(all, &[HTML, TABLE, TEMPLATE], TABLE_SCOPE);
    let implied = [DD, DT, LI, OPTGROUP, OPTION, P, RB, RP, RT, RTC];
    let all = add(all, &implied, IMPLIED_END | IMPLIED_END_THOROUGH);
    let all = add(all, &[CAPTION, COLGROUP, TBODY, TD, TFOOT, TH, THEAD, TR], IMPLIED_END_THOROUGH);
    let all = add(all, &[H1, H2, H3, H4, H5, H6], HEADING);
    let all = add(all, &[TABLE, TBODY, TFOOT, THEAD, TR], TABLE_CONTEXT);
    let all = add(
        all,
        &[
            B, BIG, BLOCKQUOTE, BODY, BR, CENTER, CODE, DD, DIV, DL, DT, EM, EMBED, H1, H2, H3, H4, H5, H6, HEAD, HR, I, IMG, LI,
            LISTING, MENU, META, NOBR, OL, P, PRE, RUBY, S, SMALL, SPAN, STRIKE, STRONG, SUB, SUP, TABLE, TT, U, UL, VAR,
        ],
        BREAKOUT,
    );
    let all = add(all, &[A, B, BIG, CODE, EM, FONT, I, NOBR, S, SMALL, STRIKE, STRONG, TT, U], FORMATTING);
    add(
        all,
        &[AREA, BASE, BASEFONT, BGSOUND, BR, COL, EMBED, FRAME, HR, IMG, INPUT, KEYGEN, LINK, META, PARAM, SOURCE, TRACK, WBR],
        VOID,
    )
}
