//! Progress on standard error: a bar on a terminal, Scrapy's periodic line otherwise.
//!
//! A thread of its own reads the counters; the job never waits for it.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle as BarStyle};

use super::terminal;
use super::text::{clock, grouped};
use crate::run::Progress;
use crate::settings::{ProgressStyle, Settings};

/// Between two drawings of the bar.
const FRAME: Duration = Duration::from_millis(250);
/// Drawings the speed is taken over: 5 s.
const WINDOW: usize = 20;

/// Progress that is being shown; ends when dropped.
#[derive(Debug)]
pub(crate) struct Shown {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bar,
    Lines,
}

/// The counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sample {
    pages: u64,
    items: u64,
    queued: u64,
    in_flight: u64,
    leases: u64,
    errors: u64,
}

/// Begins to show the progress as the settings say; `None` when nothing is to be shown.
pub(crate) fn show(settings: &Settings, progress: Arc<Progress>) -> Option<Shown> {
    let kind = choose(settings.progress, std::io::stderr().is_terminal())?;
    let every = settings.logstats_interval;
    if kind == Kind::Lines && every.is_zero() {
        return None;
    }
    let (end, ended) = channel();
    let thread = std::thread::Builder::new()
        .name("dragline-progress".to_owned())
        .spawn(move || match kind {
            Kind::Bar => draw(&progress, &ended),
            Kind::Lines => log(&progress, every, &ended),
        })
        .ok()?;
    Some(Shown { end: Some(end), thread: Some(thread) })
}

impl Drop for Shown {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A bar needs a terminal; without one it is lines whatever was asked for.
fn choose(style: ProgressStyle, terminal: bool) -> Option<Kind> {
    match style {
        ProgressStyle::Off => None,
        ProgressStyle::Auto | ProgressStyle::Bar if terminal => Some(Kind::Bar),
        _ => Some(Kind::Lines),
    }
}

fn draw(progress: &Progress, ended: &Receiver<()>) {
    let bar =
        ProgressBar::with_draw_target(None, ProgressDrawTarget::term_like_with_hz(Box::new(terminal::Narrow::default()), 4));
    if let Ok(style) = BarStyle::with_template("{spinner} {wide_msg}") {
        bar.set_style(style);
    }
    terminal::show(bar.clone());
    let begin = Instant::now();
    let mut speed = Speed::new(begin);
    loop {
        let now = Instant::now();
        let sample = Sample::of(progress);
        bar.set_message(bar_text(&sample, speed.per_second(now, sample.pages), now - begin));
        bar.tick();
        if ended.recv_timeout(FRAME) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    terminal::hide();
    bar.finish_and_clear();
}

fn log(progress: &Progress, every: Duration, ended: &Receiver<()>) {
    let mut before = Sample::default();
    while ended.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
        let now = Sample::of(progress);
        tracing::info!(target: "dragline::logstats", "{}", line(&before, &now, every));
        before = now;
    }
}

fn bar_text(sample: &Sample, pages_per_second: f64, elapsed: Duration) -> String {
    format!(
        "{} · {} pages ({pages_per_second:.1}/s) · {} items · {} queued · {} in flight · {} leases · {} errors",
        clock(elapsed),
        grouped(sample.pages),
        grouped(sample.items),
        grouped(sample.queued),
        grouped(sample.in_flight),
        grouped(sample.leases),
        grouped(sample.errors)
    )
}

/// The line of Scrapy's log stats.
fn line(before: &Sample, now: &Sample, every: Duration) -> String {
    let rate = |before: u64, now: u64| (now.saturating_sub(before) as f64 * 60.0 / every.as_secs_f64()).round();
    format!(
        "Crawled {} pages (at {} pages/min), scraped {} items (at {} items/min)",
        now.pages,
        rate(before.pages, now.pages),
        now.items,
        rate(before.items, now.items)
    )
}

impl Sample {
    fn of(progress: &Progress) -> Self {
        Self {
            pages: progress.pages.load(Ordering::Relaxed),
            items: progress.items.load(Ordering::Relaxed),
            queued: progress.queued.load(Ordering::Relaxed),
            in_flight: progress.in_flight.load(Ordering::Relaxed),
            leases: progress.leases.load(Ordering::Relaxed),
            errors: progress.errors.load(Ordering::Relaxed),
        }
    }
}

/// Speed over the last drawings.
#[derive(Debug)]
struct Speed(std::collections::VecDeque<(Instant, u64)>);

impl Speed {
    fn new(begin: Instant) -> Self {
        Self([(begin, 0)].into())
    }

    fn per_second(&mut self, now: Instant, pages: u64) -> f64 {
        if self.0.len() > WINDOW {
            self.0.pop_front();
        }
        self.0.push_back((now, pages));
        let (since, before) = self.0.front().copied().unwrap_or((now, pages));
        let time = (now - since).as_secs_f64();
        // The first drawing comes at once: no time has passed that a speed could be taken over.
        if time >= FRAME.as_secs_f64() / 2.0 { pages.saturating_sub(before) as f64 / time } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
    use super::*;

    fn sample(pages: u64, items: u64) -> Sample {
        Sample { pages, items, queued: 12_345, in_flight: 8, leases: 3, errors: 1 }
    }

    #[test]
    fn a_bar_is_only_drawn_on_a_terminal() {
        for (style, on_terminal, otherwise) in [
            (ProgressStyle::Auto, Some(Kind::Bar), Some(Kind::Lines)),
            (ProgressStyle::Bar, Some(Kind::Bar), Some(Kind::Lines)),
            (ProgressStyle::Lines, Some(Kind::Lines), Some(Kind::Lines)),
            (ProgressStyle::Off, None, None),
        ] {
            assert_eq!(choose(style, true), on_terminal);
            assert_eq!(choose(style, false), otherwise);
        }
    }

    #[test]
    fn the_line_is_scrapys() {
        assert_eq!(
            line(&sample(100, 40), &sample(250, 41), Duration::from_secs(30)),
            "Crawled 250 pages (at 300 pages/min), scraped 41 items (at 2 items/min)"
        );
    }

    #[test]
    fn the_bar_names_every_number() {
        assert_eq!(
            bar_text(&sample(1_500, 2), 99.96, Duration::from_secs(3_725)),
            "1:02:05 · 1,500 pages (100.0/s) · 2 items · 12,345 queued · 8 in flight · 3 leases · 1 errors"
        );
    }

    #[test]
    fn speed_forgets_what_is_long_past() {
        let begin = Instant::now();
        let mut speed = Speed::new(begin);
        assert!(speed.per_second(begin + Duration::from_micros(10), 5).abs() < 0.01, "too early to tell");
        let mut speed = Speed::new(begin);
        let mut last = 0.0;
        for frame in 1..=100_u32 {
            let pages = if frame <= 50 { u64::from(frame) * 10 } else { 500 };
            last = speed.per_second(begin + FRAME * frame, pages);
            if frame == 50 {
                assert!((last - 40.0).abs() < 0.01, "{last}");
            }
        }
        assert!(last.abs() < 0.01, "{last}");
    }

    #[test]
    fn lines_are_logged_until_it_is_dropped() {
        let settings =
            Settings { progress: ProgressStyle::Lines, logstats_interval: Duration::from_millis(5), ..Settings::default() };
        let shown = show(&settings, Arc::default()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        drop(shown);
        let none = Settings { logstats_interval: Duration::ZERO, ..settings };
        assert!(show(&none, Arc::default()).is_none());
    }
}
