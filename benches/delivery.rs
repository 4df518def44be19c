//! What the way of a batch costs: from values to text, into the record log, into one body, its signature, and into the job
//! store. Each figure is for 50 records, the usual size of a batch: 25 items of 0.5 KB and 25 request records.
//!
//! `cargo bench --bench delivery`. Without cargo's `--bench` each part runs once, so that it cannot rot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use dragline::apcloudy::{BodyBuilder, JobId, RecordKind, RequestRecord, Signer, item_text};
use dragline::collector::log::{Entry, LogOptions, RecordLog};
use dragline::courier::JobStore;
use serde::Serialize;

/// Items, and as many request records.
const ITEMS: usize = 25;

#[derive(Serialize)]
struct Product {
    url: String,
    title: String,
    price: f64,
    stock: usize,
    tags: Vec<&'static str>,
    description: String,
}

fn product(n: usize) -> Product {
    Product {
        url: format!("https://shop.example/products/{n}-a-book"),
        title: format!("Book {n} about the café at the corner"),
        price: 12.5,
        stock: n,
        tags: vec!["fiction", "signed", "second-hand"],
        description: "Novels that take their time and reward yours. ".repeat(6),
    }
}

fn request(n: usize) -> RequestRecord {
    RequestRecord {
        url: format!("https://shop.example/products/{n}-a-book"),
        parent_url: Some("https://shop.example/category/poetry?page=3".to_owned()),
        method: "GET".to_owned(),
        status_code: 200,
        response_time: 0.034_999,
        fingerprint: "51b185f56f916957558db9784e0a03db9b4603bf".to_owned(),
        error: None,
        success: true,
    }
}

fn texts() -> Vec<(RecordKind, String)> {
    let items = (0..ITEMS).map(|n| (RecordKind::Item, item_text(&product(n), 1_700_000_000).unwrap().text));
    let requests = (0..ITEMS).map(|n| (RecordKind::Request, request(n).to_text().unwrap()));
    requests.chain(items).collect()
}

fn body(texts: &[(RecordKind, String)], job: &JobId) -> String {
    let mut body = BodyBuilder::new();
    for (kind, text) in texts {
        body.push(*kind, text);
    }
    body.finish(job)
}

fn delivery(c: &mut Criterion) {
    let job = JobId::from("bench");
    let products: Vec<_> = (0..ITEMS).map(product).collect();
    let requests: Vec<_> = (0..ITEMS).map(request).collect();
    let texts = texts();
    let whole = body(&texts, &job);
    let signer = Signer::new("a secret of the bench".to_owned().into());

    let mut group = c.benchmark_group("batch of 50 records");
    group.bench_function("1 records to text", |b| {
        b.iter(|| {
            for (product, request) in products.iter().zip(&requests) {
                black_box(item_text(black_box(product), 1_700_000_000).unwrap());
                black_box(black_box(request).to_text().unwrap());
            }
        });
    });
    group.bench_function("2 into the record log, without sync", |b| {
        let folder = tempfile::tempdir().unwrap();
        // Segments as a run has them; those that are full stay on disk until the end.
        let (mut log, _) = RecordLog::open(folder.path(), &job, LogOptions::new(1)).unwrap();
        b.iter(|| {
            let pairs = texts[..ITEMS].iter().zip(&texts[ITEMS..]);
            for ((_, request), (_, item)) in pairs {
                log.append_group(&[Entry::Item(item.as_str().into()), Entry::Request(request.as_str().into())]).unwrap();
            }
            log.flush_writes().unwrap();
        });
    });
    group.bench_function("3 one body of them", |b| b.iter(|| black_box(body(black_box(&texts), &job))));
    group.bench_function("4 its signature", |b| b.iter(|| black_box(signer.sign("1700000000", black_box(whole.as_bytes())))));
    group.bench_function("5 into the job store", |b| {
        let folder = tempfile::tempdir().unwrap();
        let store = JobStore::open(&folder.path().join("jobs.db")).unwrap();
        let mut n = 0_u64;
        b.iter_batched(
            || {
                n += 1;
                format!("{n:032x}")
            },
            |id| store.store(&id, &job, &whole).unwrap(),
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, delivery);
criterion_main!(benches);
