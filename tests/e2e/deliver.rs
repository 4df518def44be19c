//! `dragline deliver`: what killed crawls left goes to the sink, once, and the call says what came of it.

use rustix::process::Signal;

use super::harness::Folder;
use super::killed::{hoarding, kept, killed, shop, spools, stored};

#[test]
fn what_two_killed_crawls_left_arrives_once_and_then_nothing_is_left() {
    let folder = Folder::new();
    let shop = shop(&folder);
    let jobs = ["one", "two"].map(|job| (job, killed(&folder, &shop, job)));
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
    let middle = bytes.len() * 2 / 3;
    bytes[middle..middle + 8].fill(0xAA);
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
