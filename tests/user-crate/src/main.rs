//! A crawl program as a user writes it, with nothing but the public interface. The end-to-end tests build and run it.

mod bookshop;
mod chains;
mod flood;
mod myspider;
mod pages;
mod parts;
mod paths;
mod seeds;
mod shop;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(path) = std::env::var_os("TEST_KEPT_FILE") {
        note_what_is_kept(path.as_ref());
    }
    dragline::App::new()
        .spider::<bookshop::Bookshop>()
        .spider::<chains::Chains>()
        .spider::<shop::Shop>()
        .spider::<pages::Pages>()
        .spider::<paths::Paths>()
        .spider::<seeds::Seeds>()
        .spider::<flood::Flood>()
        .spider::<myspider::MySpider>()
        .middleware("stamp", |settings| parts::Stamp::new(&settings.bot_name))
        .pipeline("priced", |_| Ok(parts::Priced))
        .pipeline("numbered", |_| Ok(parts::Numbered::default()))
        .extension("diary", |_| Ok(parts::Diary))
        .run()
}

/// Writes number and text of every record to a file of its own before anybody hears that it is kept. One write a line, so
/// that a kill leaves whole lines but for the last.
fn note_what_is_kept(path: &Path) {
    let file = OpenOptions::new().create(true).append(true).open(path).expect("the file can be written");
    dragline::testkit::on_kept(move |number, text| {
        (&file).write_all(format!("{number}\t{text}\n").as_bytes()).expect("the file can be written");
    });
}
