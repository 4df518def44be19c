//! Whole crawls with an engine that does anything an engine may do, and what a page costs.

use proptest::prelude::*;

use super::*;

/// What the played engine does with a job or hop.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Settle,
    NeverSent,
    Retry,
    Follow,
    Links(u8),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        4 => Just(Fate::Settle),
        1 => Just(Fate::NeverSent),
        2 => Just(Fate::Retry),
        2 => Just(Fate::Follow),
        3 => (1_u8..6).prop_map(Fate::Links),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn whatever_becomes_of_requests_the_crawl_comes_to_an_end_with_balanced_books(
        fates in proptest::collection::vec(fate(), 1..150),
        per_slot in 1_usize..4,
        delay in prop_oneof![Just(0_u64), 1_u64..50],
        credits in 1_usize..6,
        obeys: bool,
        seed: u64,
    ) {
        let mut played = Played::new(SchedulerConfig {
            pacing: Pacing { per_slot, delay: Duration::from_millis(delay), jitter: 0.5, ..Pacing::default() },
            robots_agent: obeys.then(|| "dragline".to_owned()),
            seed,
            ..config()
        });
        let seeds = (0..6).map(|n| format!("http://{}.test/private/{n}", n % 3));
        let seeds = seeds.map(|url| played.page(&url)).collect();
        played.offer(seeds);
        let mut fates = fates.into_iter();
        let mut page = 0_u32;
        let mut free = credits;
        for step in 0.. {
            prop_assert!(step < 20_000, "no end: {:?}", played.frontier);
            let upto = played.frontier.handed() + free as u64;
            played.order(Order::Pull { seq: 1, upto });
            let wake = played.turn();
            let mut went: Vec<(Box<Job>, SlotKey, bool, Verdict)> = Vec::new();
            for fact in std::mem::take(&mut played.facts) {
                match fact {
                    Fact::Ready(ready) => {
                        prop_assert!(ready.jobs.len() <= free);
                        prop_assert!(ready.books.balances());
                        free -= ready.jobs.len();
                        went.extend(ready.jobs.into_iter().map(|d| (d.job, d.slot, d.wants_sent, d.verdict)));
                    }
                    Fact::Paced(p) => went.push((p.job, p.slot, p.wants_sent, p.verdict)),
                    _ => {}
                }
            }
            let idle = went.is_empty();
            for (mut job, slot, wants_sent, verdict) in went {
                if verdict == Verdict::PutBack {
                    played.order(Order::PutBack { job, delay: Duration::ZERO });
                    free += 1;
                    continue;
                }
                if verdict != Verdict::Go {
                    let outcome = Outcome::Dropped(FailureKind::RobotsForbidden);
                    played.order(Order::Settle { id: job.id, outcome });
                    free += 1;
                    continue;
                }
                let fate = fates.next().unwrap_or(Fate::Settle);
                if wants_sent && !matches!(fate, Fate::NeverSent) {
                    played.order(Order::Sent { id: RequestId(0), slot: slot.clone(), at: played.now });
                }
                played.order(Order::Freed { id: RequestId(0), slot, unsent: false });
                match fate {
                    Fate::NeverSent | Fate::Retry => {
                        played.order(Order::PutBack { job, delay: Duration::from_millis(u64::from(page % 70)) });
                        free += 1;
                    }
                    Fate::Follow if job.kind == JobKind::Page => {
                        page += 1;
                        job.request.set_url(format!("http://{}.test/{page}", page % 3).parse().unwrap());
                        job.key = u128::from(page);
                        played.order(Order::Hop { tag: Tag { ticket: 1, epoch: 0 }, job });
                    }
                    _ => {
                        if let Fate::Links(count) = fate {
                            let links = (0..count).map(|n| {
                                page += u32::from(n % 2);
                                child(job.id, u64::from(n), &format!("http://{}.test/{page}", page % 3))
                            });
                            played.order(Order::Offer { offer: 0, jobs: links.collect(), seeds: false });
                        }
                        if job.kind == JobKind::Robots {
                            let origin = format!("http://{}", job.url().host_str().unwrap());
                            played.rules(&origin, "User-agent: *\nDisallow: /private/3\n");
                        }
                        played.order(Order::Settle { id: job.id, outcome: Outcome::Handled });
                        free += 1;
                    }
                }
            }
            if idle {
                let Some(wake) = wake else { break };
                prop_assert!(wake > played.now, "a wake that is due already would spin");
                played.now = wake;
            }
        }
        let books = played.frontier.books();
        prop_assert!(books.balances());
        prop_assert_eq!(books.pending, 0, "{:?}", played.frontier);
        prop_assert_eq!(free, credits);
        prop_assert!(played.frontier.waiting.is_empty());
        played.now += Duration::from_secs(60);
        played.turn();
        prop_assert_eq!(played.frontier.slots.len(), 0, "idle hosts cost nothing");
    }
}

#[test]
#[ignore = "a measurement: run it optimised and alone"]
fn a_page_with_twenty_links_costs_less_than_five_microseconds() {
    let mut played = Played::new(config());
    played.pages(&["http://a.test/start"]);
    let links: Vec<String> = (0..200_000).map(|n| format!("https://shop.example/category/item-{n}.html")).collect();
    let mut spent = Duration::ZERO;
    let mut due = played.pull(1).jobs;
    let pages = 100_000_u32;
    for n in 0..pages as usize {
        let page = due.pop().unwrap();
        let children: Vec<Job> =
            (0..20).map(|k| child(page.job.id, k, &links[(n + 1).saturating_sub(usize::try_from(k).unwrap())])).collect();
        played.offers += 1;
        let began = std::time::Instant::now();
        played.order(Order::Sent { id: RequestId(0), slot: page.slot.clone(), at: played.now });
        played.order(Order::Freed { id: RequestId(0), slot: page.slot.clone(), unsent: false });
        played.order(Order::Offer { offer: played.offers, jobs: children, seeds: false });
        played.order(Order::Settle { id: page.job.id, outcome: Outcome::Handled });
        let upto = played.frontier.handed() + 1;
        played.order(Order::Pull { seq: 1, upto });
        let turn = played.frontier.turn(played.now);
        spent += began.elapsed();
        due = turn.facts.into_iter().filter_map(|f| if let Fact::Ready(r) = f { Some(r.jobs) } else { None }).flatten().collect();
    }
    println!("{:?} a page", spent / pages);
    assert!(spent / pages < Duration::from_micros(5), "{:?}", spent / pages);
}
