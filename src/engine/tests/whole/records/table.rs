//! Every kind of event with the records it leaves.

use super::{ROOT, a};
use crate::api::failure::FailureKind;
use crate::api::request::Request;
use crate::engine::tests::whole::SECOND;
use crate::engine::tests::whole::fakes::Judged;
use crate::engine::tests::whole::script::Do::{self, Error, Panic};
use crate::engine::tests::whole::script::{Script, follow, item, make};
use crate::engine::tests::whole::stand::Stand;
use crate::plane::{Ask, RefusalKind};
use crate::testkit::transport::Answer;

/// One kind of event: how to bring it about, its records in both modes, and those of `all` beside.
pub(super) struct Row {
    pub(super) event: &'static str,
    pub(super) stand: Box<dyn Fn() -> Stand>,
    pub(super) records: Vec<String>,
    pub(super) only_all: Vec<String>,
}

fn row(event: &'static str, stand: impl Fn() -> Stand + 'static, records: &[&str], only_all: &[&str]) -> Row {
    let own = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    Row { event, stand: Box::new(stand), records: own(records), only_all: own(only_all) }
}

/// A job whose root asks for these.
fn asking(list: impl IntoIterator<Item = Do>) -> Stand {
    Stand::new().start([follow(ROOT)]).page(ROOT, list)
}

/// As `asking`, for one page with these answers.
fn page(answers: impl IntoIterator<Item = Answer>) -> Stand {
    asking([follow(&a("x"))]).answers(&a("x"), answers)
}

fn answers(statuses: &'static [u16]) -> impl Fn() -> Stand {
    move || {
        let mut stand = asking(statuses.iter().map(|status| follow(&a(&status.to_string()))));
        for status in statuses {
            stand = stand.answers(&a(&status.to_string()), [Answer::new(*status, "")]);
        }
        stand
    }
}

fn always(kind: FailureKind) -> impl Fn() -> Stand {
    move || page([Answer::fault(kind)])
}

fn chain() -> Stand {
    let mut stand = asking([follow(&a("0"))]).with(|s| s.redirect_max_times = 2);
    for n in 0..5 {
        stand = stand.answers(&a(&n.to_string()), [Answer::redirect(302, &format!("/{}", n + 1))]);
    }
    stand
}

fn robots(answers: Vec<Answer>, then: Vec<Do>) -> Stand {
    let mut stand = Stand::new().start(then).with(|s| s.robotstxt_obey = true);
    stand.script.domains = vec!["a.test".to_owned()];
    stand.answers("http://a.test/robots.txt", answers)
}

pub(super) fn allowed(list: Vec<Do>) -> Stand {
    let mut stand = asking(list);
    stand.script.domains = vec!["a.test".to_owned()];
    stand
}

const RULES: &str = "User-agent: *\nDisallow: /private\n";

/// What the Python client does, row for row, and what it leaves out.
pub(super) fn table() -> Vec<Row> {
    let post = || {
        let form = |request: &mut Request| {
            request.set_method(http::Method::POST);
            request.body("q=1");
        };
        let stand = asking([make(&a("form"), form)]);
        stand.wire.on(http::Method::POST, &a("form"), [Answer::redirect(303, "/done")]);
        stand
    };
    let refuse = |why: RefusalKind| {
        move || {
            let judge = move |ask: &Ask, _| {
                if ask.path == "/x" { Judged::Refuse(why, Some(10 * SECOND)) } else { Judged::Grant }
            };
            page([]).judge(judge).with(|s| s.lease_give_up = 60 * SECOND)
        }
    };
    let three = |line: &'static str| [line, line, line];
    vec![
        row(
            "2xx",
            answers(&[200, 201, 204]),
            &["GET 200 http://a.test/200", "GET 201 http://a.test/201", "GET 204 http://a.test/204"],
            &[],
        ),
        row(
            "other statuses that are not retried",
            answers(&[304, 403, 404, 418]),
            &["GET 304 http://a.test/304", "GET 403 http://a.test/403", "GET 404 http://a.test/404", "GET 418 http://a.test/418"],
            &[],
        ),
        row(
            "redirects to a page, of which the first has a fragment",
            || {
                asking([follow(&a("one#part")), follow(&a("two"))])
                    .answers(&a("one"), [Answer::redirect(301, "/to/one")])
                    .answers(&a("two"), [Answer::redirect(302, "/to/two#own")])
            },
            &["GET 200 http://a.test/to/one#part", "GET 200 http://a.test/to/two#own"],
            &["GET 301 http://a.test/one#part", "GET 302 http://a.test/two"],
        ),
        row("a redirect that becomes a GET", post, &["GET 200 http://a.test/done"], &["POST 303 http://a.test/form"]),
        row(
            "a redirect to a page that was seen",
            || page([Answer::redirect(302, "/y").after(SECOND)]).page(ROOT, [follow(&a("x")), follow(&a("y"))]),
            &["GET 200 http://a.test/y", "GET 302 http://a.test/x IgnoreRequest: redirected to a URL that was seen before"],
            &[],
        ),
        row(
            "too many redirects",
            chain,
            &["GET 302 http://a.test/2 IgnoreRequest: max redirections reached: 2 were followed, REDIRECT_MAX_TIMES allows 2"],
            &["GET 302 http://a.test/0", "GET 302 http://a.test/1"],
        ),
        row(
            "a redirect out of the allowed domains",
            || allowed(vec![follow(&a("out"))]).answers(&a("out"), [Answer::redirect(302, "http://b.test/")]),
            &["GET 302 http://a.test/out IgnoreRequest: Filtered offsite request to 'b.test'"],
            &[],
        ),
        row(
            "redirects that cannot be followed",
            || {
                asking(["x", "y", "z"].map(|path| follow(&a(path))))
                    .answers(&a("x"), [Answer::redirect(302, "ftp://a.test/")])
                    .answers(&a("y"), [Answer::redirect(302, "http://[zz]/")])
                    .answers(&a("z"), [Answer::new(302, "")])
            },
            &[
                "GET 302 http://a.test/x IgnoreRequest: a redirect to the scheme \"ftp\" is not followed, only http and https are",
                "GET 302 http://a.test/y IgnoreRequest: the Location of this 302 answer is no URL",
                "GET 302 http://a.test/z",
            ],
            &[],
        ),
        row(
            "503, then 200",
            || page([Answer::new(503, ""), Answer::html("ok")]),
            &["GET 200 http://a.test/x"],
            &["GET 503 http://a.test/x"],
        ),
        row(
            "500 on every attempt",
            || page([Answer::new(500, "")]),
            &["GET 500 http://a.test/x"],
            &["GET 500 http://a.test/x"; 2],
        ),
        row(
            "429 on every attempt",
            || page([Answer::new(429, "")]),
            &["GET 429 http://a.test/x"],
            &["GET 429 http://a.test/x"; 2],
        ),
        row(
            "DNS failure on every attempt",
            always(FailureKind::Resolve),
            &three("GET 0 http://a.test/x CannotResolveHostError: scripted resolve"),
            &[],
        ),
        row(
            "refused on every attempt",
            always(FailureKind::Refused),
            &three("GET 0 http://a.test/x DownloadConnectionRefusedError: scripted refused"),
            &[],
        ),
        row(
            "timeout on every attempt",
            always(FailureKind::Timeout),
            &three("GET 0 http://a.test/x DownloadTimeoutError: scripted timeout"),
            &[],
        ),
        row(
            "reset on every attempt",
            always(FailureKind::Lost),
            &three("GET 0 http://a.test/x DownloadFailedError: scripted lost"),
            &[],
        ),
        row("a truncated body", always(FailureKind::DataLoss), &three("GET 0 http://a.test/x ResponseDataLossError: "), &[]),
        row("TLS failure", always(FailureKind::Tls), &three("GET 0 http://a.test/x DownloadFailedError: scripted tls"), &[]),
        row(
            "a garbage reply",
            always(FailureKind::BadReply),
            &three("GET 0 http://a.test/x DownloadFailedError: scripted bad_reply"),
            &[],
        ),
        row(
            "a reset, 503, then 200",
            || page([Answer::fault(FailureKind::Lost), Answer::new(503, ""), Answer::html("ok")]),
            &["GET 0 http://a.test/x DownloadFailedError: scripted lost", "GET 200 http://a.test/x"],
            &["GET 503 http://a.test/x"],
        ),
        row(
            "robots.txt",
            || robots(vec![Answer::new(200, RULES)], vec![follow(ROOT)]),
            &["GET 200 http://a.test/robots.txt of none"],
            &[],
        ),
        row(
            "robots.txt behind a redirect",
            || robots(vec![Answer::redirect(302, "/rules")], vec![follow(ROOT)]),
            &["GET 200 http://a.test/rules of none"],
            &["GET 302 http://a.test/robots.txt of none"],
        ),
        row(
            "robots.txt out of reach",
            || robots(vec![Answer::fault(FailureKind::Refused)], vec![follow(ROOT)]),
            &[
                "GET 0 http://a.test/ of none IgnoreRequest: robots.txt could not be read, so the page may not be fetched for now: scripted refused",
                "GET 0 http://a.test/robots.txt of none DownloadConnectionRefusedError: scripted refused",
                "GET 0 http://a.test/robots.txt of none DownloadConnectionRefusedError: scripted refused",
                "GET 0 http://a.test/robots.txt of none DownloadConnectionRefusedError: scripted refused",
            ],
            &[],
        ),
        row(
            "robots.txt that redirects without end counts as missing",
            || robots(vec![Answer::redirect(302, "/robots.txt")], vec![follow(ROOT)]).with(|s| s.redirect_max_times = 1),
            &[
                "GET 302 http://a.test/robots.txt of none IgnoreRequest: max redirections reached: 1 were followed, REDIRECT_MAX_TIMES allows 1",
            ],
            &["GET 302 http://a.test/robots.txt of none"],
        ),
        row(
            "forbidden by robots.txt",
            || robots(vec![Answer::new(200, RULES)], vec![follow(&a("private/1"))]),
            &[
                "GET 0 http://a.test/private/1 of none IgnoreRequest: Forbidden by robots.txt",
                "GET 200 http://a.test/robots.txt of none",
            ],
            &[],
        ),
        row(
            "a redirect to what robots.txt forbids",
            || {
                robots(vec![Answer::new(200, RULES)], vec![follow(&a("x"))])
                    .answers(&a("x"), [Answer::redirect(302, "/private/1")])
            },
            &[
                "GET 0 http://a.test/private/1 of none IgnoreRequest: Forbidden by robots.txt",
                "GET 200 http://a.test/robots.txt of none",
            ],
            &["GET 302 http://a.test/x of none"],
        ),
        row(
            "a redirect to an origin whose robots.txt is not known",
            || {
                let mut stand = robots(vec![Answer::new(200, RULES)], vec![follow(&a("x"))]);
                stand.script.domains.clear();
                stand
                    .answers(&a("x"), [Answer::redirect(302, "http://b.test/y")])
                    .answers("http://b.test/robots.txt", [Answer::new(404, "")])
            },
            &[
                "GET 200 http://a.test/robots.txt of none",
                "GET 200 http://b.test/y of none",
                "GET 404 http://b.test/robots.txt of none",
            ],
            &["GET 302 http://a.test/x of none"],
        ),
        row("duplicates", || asking(["x", "x", ""].map(|path| follow(&a(path)))), &["GET 200 http://a.test/x"], &[]),
        row(
            "offsite requests",
            || {
                let stand = allowed(vec![follow("http://b.test/1"), follow(&a("x")), follow("http://c.test/")]);
                Stand { script: Script { start: vec![follow("http://b.test/0"), follow(ROOT)], ..stand.script }, ..stand }
            },
            &["GET 200 http://a.test/x"],
            &[
                "GET 0 http://b.test/0 of none IgnoreRequest: Filtered offsite request to 'b.test'",
                "GET 0 http://b.test/1 IgnoreRequest: Filtered offsite request to 'b.test'",
                "GET 0 http://c.test/ IgnoreRequest: Filtered offsite request to 'c.test'",
            ],
        ),
        row(
            "too deep or too long",
            || {
                asking([follow(&a("x")), follow(&a(&"y".repeat(50)))])
                    .with(|s| (s.depth_limit, s.urllength_limit) = (1, 50))
                    .page(&a("x"), [follow(&a("deep"))])
            },
            &["GET 200 http://a.test/x"],
            &[],
        ),
        row(
            "an unsupported scheme",
            || asking([follow("foo://a.test/x")]),
            &["GET 0 foo://a.test/x NotSupported: Unsupported URL scheme 'foo': no handler available for that scheme"],
            &[],
        ),
        row(
            "a body over the limit",
            always(FailureKind::TooLarge),
            &["GET 0 http://a.test/x DownloadCancelledError: scripted too_large"],
            &[],
        ),
        row(
            "exceptions in callbacks",
            || asking(["x", "y"].map(|path| follow(&a(path)))).page(&a("x"), [item("lost"), Panic]).page(&a("y"), [Error("no")]),
            &["GET 200 http://a.test/x", "GET 200 http://a.test/y"],
            &[],
        ),
        row(
            "a lease that is refused for good",
            refuse(RefusalKind::Invalid),
            &[
                r#"GET 0 http://a.test/x IgnoreRequest: the request for http://a.test/x makes an ask the control plane does not take: site "a.test", client "", group "", path "/x" (scripted invalid_argument); keep within its limits"#,
            ],
            &[],
        ),
        row(
            "a lease that does not come within LEASE_GIVE_UP",
            refuse(RefusalKind::NoIdentity),
            &[
                "GET 0 http://a.test/x IgnoreRequest: no lease of site a.test for 60 s (LEASE_GIVE_UP): scripted no_identity_available",
            ],
            &[],
        ),
        row(
            "a lease that the target of a redirect does not get at first",
            || {
                let judge = |ask: &Ask, now| {
                    if &*ask.site == "b.test" && now < 5 * SECOND {
                        Judged::Refuse(RefusalKind::NoIdentity, Some(SECOND))
                    } else {
                        Judged::Grant
                    }
                };
                page([Answer::redirect(302, "http://b.test/y")]).judge(judge)
            },
            &["GET 200 http://b.test/y"],
            &["GET 302 http://a.test/x"],
        ),
        row(
            "a lease that the target of a redirect never gets",
            || {
                let judge = |ask: &Ask, _| {
                    if &*ask.site == "b.test" { Judged::Refuse(RefusalKind::Invalid, None) } else { Judged::Grant }
                };
                page([Answer::redirect(302, "http://b.test/y")]).judge(judge)
            },
            &[
                r#"GET 0 http://b.test/y IgnoreRequest: the request for http://b.test/y makes an ask the control plane does not take: site "b.test", client "", group "", path "/y" (scripted invalid_argument); keep within its limits"#,
            ],
            &["GET 302 http://a.test/x"],
        ),
    ]
}
