//! `dragline deliver`: what killed crawls left goes to the sink, once, and the call says what came of it.

use dragline::testkit::{ScriptedWebhook, Step};
use rustix::process::Signal;

use super::harness::{Folder, LIMIT, Shop};
use super::killed::{hoarding, kept, kill, killed, shop, spools, stored};

#[test]
fn what_two_killed_crawls_left_arrives_once_and_then_nothing_is_left() {
    let folder = Folder::new();
    let shop = shop(&folder);
    // At once: a crawl that begins later would send what the other one left.
    let running = ["one", "two"].map(|job| (job, hoarding(&folder, &shop, job, &[])));
    let jobs = running.map(|(job, running)| (job, kill(&folder, running, job)));
    let items = jobs.each_ref().map(|(_, spool)| kept(spool));
    let ended = folder.run(&["deliver"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    let lines: Vec<_> = ended.out.lines().collect();
    assert_eq!(lines.len(), 2, "{ended}");
    for ((job, spool), (line, items)) in jobs.iter().zip(lines.iter().zip(&items)) {
        assert!(line.contains(spool.file_name().unwrap().to_str().unwrap()), "{line}");
        assert!(line.contains(&format!(": job {job}, ")) && line.ends_with(" records delivered, 0 refused, 0 left"), "{line}");
        assert!(!items.is_empty());
        assert_eq!(&stored(&folder, job), items, "{job}");
    }
    assert!(spools(&folder).is_empty());
    let again = folder.run(&["deliver"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "nothing is left to deliver in .dragline/spool\n"), "{again}");
}

#[test]
fn a_spool_that_a_running_crawl_has_is_named_and_left_alone() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let left = killed(&folder, &shop, "left");
    let items = kept(&left);
    // Holds its spool, and sends what is left only when its own sink allows: another place.
    let running = hoarding(&folder, &shop, "running", &["-s", "DATA_DIR=elsewhere"]);
    let held = std::fs::read_dir(folder.file("elsewhere/spool")).unwrap().next().unwrap().unwrap().path();
    let named = held.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned();
    let ended = folder.run(&["deliver", "--spool", &named]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(ended.out.contains("a running process has it"), "{ended}");
    running.signal(Signal::KILL);
    running.end();
    let ours = kept(&held);
    let ended = folder.run(&["deliver", "--spool", &named]);
    assert_eq!(ended.code, Some(0), "{ended}");
    ended.says(&["the crawl meant it for embedded /"]);
    assert_eq!(stored(&folder, "running"), ours, "to the sink of the settings and not to that of its card");
    assert!(left.exists(), "only the spool that was named");
    assert_eq!(folder.run(&["deliver"]).code, Some(0));
    assert_eq!(stored(&folder, "left"), items);
}

#[test]
fn a_damaged_spool_gives_what_can_be_read_and_the_rest_is_named() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let spool = killed(&folder, &shop, "damaged");
    let items = kept(&spool);
    let segment =
        spool.read_dir().unwrap().map(|entry| entry.unwrap().path()).find(|path| path.extension().is_some_and(|e| e == "log"));
    let segment = segment.unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    // Within the text of an item.
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"\"_ts\"")).collect();
    let middle = places[places.len() / 2];
    bytes[middle..middle + 5].fill(0xAA);
    std::fs::write(&segment, bytes).unwrap();
    let ended = folder.run(&["deliver"]);
    assert_eq!(ended.code, Some(4), "{ended}");
    ended.says(&["a part of the record log does not read"]);
    assert!(ended.out.contains("0 left; 1 segments that did not read are kept as *.damaged"), "{ended}");
    let arrived = stored(&folder, "damaged");
    assert!(!arrived.is_empty() && arrived.len() < items.len(), "{} of {}", arrived.len(), items.len());
    assert!(arrived.iter().all(|item| items.contains(item)));
    let copies = spool.read_dir().unwrap().filter(|e| e.as_ref().unwrap().file_name().to_str().unwrap().ends_with(".damaged"));
    assert_eq!(copies.count(), 1);
}

#[test]
fn a_spool_without_a_card_is_sent_once_its_job_is_named() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let spool = killed(&folder, &shop, "old");
    let items = kept(&spool);
    std::fs::remove_file(spool.join("job.json")).unwrap();
    let dir = spool.to_str().unwrap();
    for (call, parts) in [
        (&["deliver"][..], &["not sent: it has no job.json", "--job ID"][..]),
        (&["deliver", "--job", "other", "--spool", dir], &["not sent", "holds records of another job"]),
    ] {
        let ended = folder.run(call);
        assert_eq!(ended.code, Some(4), "{ended}");
        assert!(
            parts.iter().all(|part| ended.out.contains(part)) && ended.out.starts_with(".dragline") | ended.out.starts_with(dir),
            "{ended}"
        );
    }
    let url = format!("url={}", shop.url);
    let crawl = folder.run(&["crawl", "bookshop", "-a", &url, "-s", "CLOSESPIDER_ITEMCOUNT=5"]).with_code(0);
    crawl.says(&["it has no job.json", "`dragline deliver --job ID --spool"]);
    let ended = folder.run(&["deliver", "--job", "old", "--spool", dir]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert_eq!(stored(&folder, "old"), items);
    assert!(!spool.exists());
}

#[test]
fn a_jobdir_is_delivered_and_stays() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let running = hoarding(&folder, &shop, "kept", &["--jobdir", "job"]);
    running.signal(Signal::KILL);
    running.end();
    let items = kept(&folder.file("job/spool"));
    let ended = folder.run(&["deliver", "--jobdir", "job"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(ended.out.starts_with("job/spool: job kept, "), "{ended}");
    assert_eq!(stored(&folder, "kept"), items);
    assert!(folder.file("job/job.json").exists());
    let again = folder.run(&["deliver", "--spool", "job"]);
    assert_eq!(again.code, Some(0), "{again}");
    assert_eq!(stored(&folder, "kept"), items);
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_made() {
    let folder = Folder::new();
    std::fs::create_dir(folder.file("empty")).unwrap();
    for (call, part) in [
        (&["deliver", "--spool", "nowhere"][..], "nowhere is no directory"),
        (&["deliver", "--spool", "empty"], "no spool and no JOBDIR"),
        (&["deliver", "--job", "7"], "--spool"),
        (&["deliver", "--wait", "0"], "--wait"),
        (&["deliver", "-s", "NO_SUCH=1"], "NO_SUCH"),
    ] {
        let text = folder.refused(call);
        assert!(text.contains(part), "{call:?}: {text}");
    }
    let nothing = folder.run(&["deliver"]);
    assert_eq!(nothing.code, Some(0), "{nothing}");
    assert!(!folder.file(".dragline").exists(), "nothing is made where nothing is to be done");
}

/// A folder whose settings deliver to a scripted backend.
fn folder_for(server: &ScriptedWebhook, batch: u32) -> Folder {
    let folder = Folder::new();
    let settings = format!(
        "APCLOUDY_URL = \"{}\"\nAPCLOUDY_API_KEY = \"pk_canary\"\nAPCLOUDY_SECRET_KEY = \"{SECRET}\"\nJOB_ID = 7\n\
         APCLOUDY_BATCH_SIZE = {batch}\nCLOSE_TIMEOUT = 3\n",
        server.url()
    );
    folder.write("dragline.toml", &settings);
    folder
}

const SECRET: &str = "sk_canary_of_this_test";

/// The items a backend took, sorted.
fn taken(server: &ScriptedWebhook) -> Vec<String> {
    let mut items: Vec<_> = server.records().items.iter().map(|item| item["url"].to_string()).collect();
    items.sort();
    items
}

fn fed(folder: &Folder) -> Vec<String> {
    let mut items: Vec<_> = folder.items("a.jsonl").iter().map(|item| item["url"].to_string()).collect();
    items.sort();
    items
}

#[test]
fn a_backend_that_was_away_gets_everything_once_it_is_back() {
    let server = ScriptedWebhook::start(SECRET).unwrap();
    server.set_default(Step::Answer(500));
    let folder = folder_for(&server, 20);
    let shop = Shop::start(&folder, &["--products", "30"]);
    let url = format!("url={}", shop.url);
    let crawl = folder.run(&["crawl", "bookshop", "-a", &url, "-o", "a.jsonl"]).with_code(4);
    let spool = spools(&folder).remove(0);
    let name = spool.strip_prefix(folder.path()).unwrap().to_str().unwrap();
    crawl.says(&[&format!("dragline deliver --spool {name}"), "not delivered", "Failed to send APCloudy batch "]);
    assert!(taken(&server).is_empty() && !fed(&folder).is_empty());

    let away = folder.run(&["deliver", "--wait", "1"]);
    assert_eq!(away.code, Some(4), "{away}");
    assert!(away.out.starts_with(&format!("{name}: job 7, 0 records delivered, 0 refused, ")), "{away}");
    assert!(away.out.contains(" left (") && !away.out.contains(", 0 left"), "{away}");

    server.script([Step::Hang(LIMIT)]);
    let calls = server.calls();
    let hanging = folder.start(&["deliver"]);
    hanging.says("sending ");
    hanging.until("a call that hangs", || server.calls() > calls);
    hanging.signal(Signal::TERM);
    let stopped = hanging.end();
    assert!(stopped.code == Some(2) && stopped.took < std::time::Duration::from_secs(10), "{stopped}");

    server.script([Step::TakeThenReset, Step::Answer(503)]);
    server.set_default(Step::Answer(200));
    let back = folder.run(&["deliver", "--spool", name]);
    assert_eq!(back.code, Some(0), "{back}");
    assert!(back.out.ends_with(" 0 refused, 0 left\n"), "{back}");
    assert_eq!(taken(&server), fed(&folder));
    assert!(server.requests().iter().all(|request| request.is_signed && request.text().starts_with("{\"job_id\": 7, ")));
    let again = folder.run(&["deliver"]);
    assert_eq!((again.code, again.out.as_str()), (Some(0), "nothing is left to deliver in .dragline/spool\n"), "{again}");
    assert!(!folder.file(".dragline/jobs.db").exists(), "no job store where there is a backend");
    for text in [&crawl.err, &away.err, &back.err, &away.out, &back.out] {
        assert!(!text.contains("canary"), "{text}");
    }
}

#[test]
fn what_a_backend_refused_is_sent_again_when_it_is_asked_for() {
    let server = ScriptedWebhook::start(SECRET).unwrap();
    server.refuse_if(|body| body.contains("\"_ts\"").then_some(422));
    let folder = folder_for(&server, 1);
    let shop = Shop::start(&folder, &["--products", "10"]);
    let url = format!("url={}", shop.url);
    let crawl = folder.run(&["crawl", "bookshop", "-a", &url, "-o", "a.jsonl", "-s", "CLOSESPIDER_ITEMCOUNT=4"]).with_code(4);
    crawl.says(&["dragline deliver --rejected --spool"]);
    assert!(taken(&server).is_empty());
    let plain = folder.run(&["deliver"]);
    assert_eq!(plain.code, Some(4), "{plain}");
    assert!(plain.out.contains("files of refused records in rejected/, --rejected sends them again"), "{plain}");
    let refused = folder.run(&["deliver", "--rejected"]);
    assert_eq!(refused.code, Some(4), "{refused}");
    assert!(refused.out.contains(".json: HTTP 422"), "{refused}");
    let keys = |from: usize| -> Vec<_> { server.requests().iter().skip(from).map(|r| r.key().map(str::to_owned)).collect() };
    let before = server.calls();
    server.refuse_if(|_| None);
    let taken_now = folder.run(&["deliver", "--rejected"]);
    assert_eq!(taken_now.code, Some(0), "{taken_now}");
    assert_eq!(taken(&server), fed(&folder));
    let known = keys(0);
    assert!(keys(before).iter().all(|key| known.iter().take(before).any(|known| known == key)), "each with the id it had");
    assert!(spools(&folder).is_empty());
}
