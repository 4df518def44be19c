//! The `dragline` program: every verb, with the bundled spiders.

#[path = "../spiders/mod.rs"]
mod spiders;

fn main() -> std::process::ExitCode {
    spiders::app().run()
}
