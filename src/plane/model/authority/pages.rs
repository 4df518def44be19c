//! A list of small states by identity, of which only those pages exist that somebody wrote to.

/// States of one page.
const PAGE: usize = 16;

/// The list. What was never written is the default.
#[derive(Debug, Default)]
pub(super) struct Pages<T> {
    pages: Vec<Option<Box<[T; PAGE]>>>,
}

impl<T: Default> Pages<T> {
    /// The state of `key`, if its page exists.
    pub(super) fn get(&self, key: u32) -> Option<&T> {
        self.pages.get(key as usize / PAGE)?.as_ref()?.get(key as usize % PAGE)
    }

    /// The state of `key`, to change.
    #[allow(clippy::expect_used, reason = "the page was just made, and a remainder is below what it is divided by")]
    pub(super) fn entry(&mut self, key: u32) -> &mut T {
        let page = key as usize / PAGE;
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        self.pages
            .get_mut(page)
            .and_then(|page| {
                page.get_or_insert_with(|| Box::new(std::array::from_fn(|_| T::default()))).get_mut(key as usize % PAGE)
            })
            .expect("the page was just made, and a remainder is below what it is divided by")
    }
}
