//! How fast the face is, for orientation: run it by name with `--release -- --ignored --nocapture`.

use super::*;

/// Reads one answer with a length.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Value {
    buffer.clear();
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = std::str::from_utf8(&buffer[..end]).unwrap().to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if buffer.len() == end + 4 + length.parse::<usize>().unwrap() {
                assert!(head.starts_with("http/1.1 200"), "{head}");
                return serde_json::from_slice(&buffer[end + 4..]).unwrap();
            }
        }
        assert!(stream.read_buf(buffer).await.unwrap() > 0);
    }
}

#[tokio::test]
#[ignore = "a measurement"]
async fn a_call_over_one_connection_costs_less_than_a_millisecond() {
    const CYCLES: u32 = 20_000;
    let stage = Stage::new(64).await;
    let mut stream = TcpStream::connect(stage.server.addr()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let authorization = token(ALL);
    let post = |procedure: &str, body: &str| {
        format!(
            "POST /sp/spinneret.v1.{procedure} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer {authorization}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let acquire = post("LeaseService/Acquire", r#"{"site":"shop","client":"web","uri":"/a"}"#);
    let mut buffer = Vec::new();
    let begin = std::time::Instant::now();
    for number in 0..CYCLES {
        stream.write_all(acquire.as_bytes()).await.unwrap();
        let granted = answer(&mut stream, &mut buffer).await;
        let lease = granted["lease"]["lease_id"].as_str().unwrap();
        let moment = "2026-01-01T00:00:00.000000Z";
        let report = json!({"reports": [{"report_id": format!("r{number}"), "lease_id": lease, "uri": "/a", "http_status": 200, "started_at": moment, "finished_at": moment, "release": true}]});
        stream.write_all(post("ReportService/Report", &report.to_string()).as_bytes()).await.unwrap();
        assert_eq!(answer(&mut stream, &mut buffer).await["accepted"], 1);
    }
    let took = begin.elapsed();
    println!("{:.0} calls/s, client and server on one core", f64::from(2 * CYCLES) / took.as_secs_f64());
    assert!(took / (2 * CYCLES) < std::time::Duration::from_millis(1), "{:?}", took / (2 * CYCLES));
    stage.end().await;
}
