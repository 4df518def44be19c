//! Panics as log records: place and message, and the frames of the stack from the fence round a callback to the panic.
//!
//! The panicking thread's own machinery is left out on both sides. What cannot be told as a record is printed.

use std::backtrace::Backtrace;
use std::fmt::Write as _;

use super::{logging, terminal};
use crate::settings::LogLevel;

/// The function through which almost every panic goes, and others that raise one, which may lie round it.
const RAISED: &str = "rust_begin_unwind";
const RAISING: [&str; 4] = [RAISED, "core::panicking::", "std::panicking::", "std::panic::panic_any"];
/// Functions that catch one, or where they are: what lies beyond them belongs to the runtime.
const CATCHING: [&str; 4] = ["panic/unwind_safe.rs", "std::panicking::catch_unwind", "std::panicking::try", "__rust_try"];

/// Reports panics as log lines from now on; a panic before the log is installed goes to standard error.
pub(crate) fn report() {
    std::panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let what = info.payload_as_str().unwrap_or("a value that is no text");
        let text = format!("thread {:?} panicked at {place}: {what}", thread.name().unwrap_or("unnamed"));
        if tracing::enabled!(target: "dragline::panic", tracing::Level::ERROR) {
            let exception = exception(&place, what, &Backtrace::force_capture().to_string());
            tracing::error!(target: "dragline::panic", exception, "{text}");
        }
        if !logging::current().shows(LogLevel::Error) {
            terminal::print(&text);
        }
    }));
}

/// The panic with its stack, innermost call first.
fn exception(place: &str, what: &str, stack: &str) -> String {
    let frames = frames(stack);
    let is = |frame: &[&str], names: &[&str]| frame.first().is_some_and(|call| names.iter().any(|name| call.contains(name)));
    let raised = frames.iter().rposition(|frame| is(frame, &[RAISED]));
    let raised = raised.or_else(|| frames.iter().position(|frame| is(frame, &RAISING))).unwrap_or(0);
    let rest = frames.iter().skip(raised).skip_while(|frame| is(frame, &RAISING));
    let mut text = format!("panicked at {place}: {what}");
    let catches = |frame: &[&str]| frame.iter().any(|line| CATCHING.iter().any(|name| line.contains(name)));
    for frame in rest.take_while(|frame| !catches(frame)).filter(|frame| !is(frame, &["<unknown>"])) {
        for (at, line) in frame.iter().enumerate() {
            let _ = write!(text, "\n{}{line}", if at == 0 { "  " } else { "      " });
        }
    }
    text
}

/// The calls of a stack as the standard library prints it: `  12: name`, then where it is.
fn frames(stack: &str) -> Vec<Vec<&str>> {
    let mut frames: Vec<Vec<&str>> = Vec::new();
    for line in stack.lines().map(str::trim) {
        let call = line.split_once(": ").filter(|(number, _)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()));
        match (call, frames.last_mut()) {
            (Some((_, name)), _) => frames.push(vec![name]),
            (None, Some(frame)) => frame.push(line),
            (None, None) => {}
        }
    }
    frames
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use std::panic::catch_unwind;

    use super::*;

    const STACK: &str = "   0: std::backtrace_rs::backtrace::trace
             at /rustc/1/library/std/src/../../backtrace/src/lib.rs:66:14
   1: dragline::cli::panics::report::{{closure}}
             at ./src/cli/panics.rs:25:60
   2: std::panicking::panic_with_hook
   3: __rustc::rust_begin_unwind
             at /rustc/1/library/std/src/panicking.rs:697:5
   4: core::panicking::panic_fmt
             at /rustc/1/library/core/src/panicking.rs:75:14
   5: shop::price
             at ./src/shop.rs:7:9
   6: <unknown>
   7: <shop::Shop as dragline::Spider>::parse::{{closure}}
             at ./src/shop.rs:20:5
   8: std::panicking::catch_unwind::do_call
   9: __rust_try
  10: dragline::parser::fence::Fence::poll
";

    #[test]
    fn only_the_callback_s_own_calls_are_left() {
        assert_eq!(
            exception("src/shop.rs:7:9", "no price", STACK),
            "panicked at src/shop.rs:7:9: no price\n  shop::price\n      at ./src/shop.rs:7:9\n  \
             <shop::Shop as dragline::Spider>::parse::{{closure}}\n      at ./src/shop.rs:20:5"
        );
        assert_eq!(exception("a:1:2", "x", ""), "panicked at a:1:2: x");
        assert_eq!(exception("a:1:2", "x", "  0: main\n  1: <unknown>\n"), "panicked at a:1:2: x\n  main");
    }

    #[inline(never)]
    fn it_panics() {
        assert!(std::hint::black_box(false), "on purpose");
    }

    /// Runs in a process of its own: there is one hook.
    #[test]
    #[ignore = "run by the test below in a process of its own"]
    fn child() {
        let log = logging::LogOptions {
            level: LogLevel::Info,
            format: crate::settings::LogFormat::Text,
            place: logging::LogPlace::Stderr,
        };
        logging::install(&log).unwrap();
        report();
        catch_unwind(it_panics).unwrap_err();
    }

    #[test]
    fn a_panic_is_one_record_with_the_calls_that_led_to_it() {
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "cli::panics::tests::child", "--ignored", "--nocapture", "--test-threads=1"])
            .output()
            .unwrap();
        let err = String::from_utf8_lossy(&child.stderr);
        let (_, record) = err.split_once(" [dragline.panic] ERROR: thread ").unwrap_or_else(|| panic!("{err}"));
        assert!(record.lines().next().unwrap().ends_with(": on purpose"), "{err}");
        assert!(record.lines().nth(1).unwrap().starts_with("panicked at src/cli/panics.rs:"), "{err}");
        assert!(record.lines().nth(2).unwrap().ends_with("::it_panics"), "{err}");
        assert!(!record.contains("rust_begin_unwind") && !record.contains("__rust_try"), "{err}");
    }
}
