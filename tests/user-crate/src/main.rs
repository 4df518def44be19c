//! A crawl program as a user writes it, with nothing but the public interface. The end-to-end tests build and run it.

mod flood;
mod parts;
mod paths;
mod seeds;
mod shop;

use std::process::ExitCode;

fn main() -> ExitCode {
    dragline::App::new()
        .spider::<shop::Shop>()
        .spider::<paths::Paths>()
        .spider::<seeds::Seeds>()
        .spider::<flood::Flood>()
        .middleware("stamp", |settings| parts::Stamp::new(&settings.bot_name))
        .pipeline("priced", |_| Ok(parts::Priced))
        .pipeline("numbered", |_| Ok(parts::Numbered::default()))
        .extension("diary", |_| Ok(parts::Diary))
        .run()
}
