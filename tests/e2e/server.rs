//! A small HTTP/1.1 server that can also behave badly, and remembers what it was asked.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    /// Where the connection came from.
    pub(crate) peer: SocketAddr,
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

/// What is done about it.
pub(crate) enum Answer {
    /// Status, headers, body, with the right length.
    Whole(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// A long body without a length: first these bytes, then those so many times, until nobody reads any more.
    Long { status: u16, headers: Vec<(&'static str, String)>, first: Vec<u8>, then: Vec<u8>, times: usize },
    /// As many bytes as there are, then the end, whatever the length says.
    Raw(Vec<u8>),
    /// The connection is reset.
    Reset,
    /// Nothing, for so long.
    Silence(Duration),
    /// The answer, later.
    After(Duration, Box<Answer>),
}

pub(crate) struct Server {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap()
    }
}

impl Answer {
    pub(crate) fn html(body: impl Into<String>) -> Self {
        Self::Whole(200, vec![("content-type", "text/html; charset=utf-8".to_owned())], body.into().into_bytes())
    }

    pub(crate) fn status(status: u16) -> Self {
        Self::Whole(status, Vec::new(), Vec::new())
    }

    pub(crate) fn moved(to: impl Into<String>) -> Self {
        Self::Whole(302, vec![("location", to.into())], Vec::new())
    }

    pub(crate) fn after(self, delay: Duration) -> Self {
        Self::After(delay, Box::new(self))
    }
}

impl Server {
    /// Serves until the test ends. Nobody disallows anything: `/robots.txt` is a 404 unless `answer` knows it.
    pub(crate) fn start(answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1", answer)
    }

    /// The same at another address of this machine, 127.0.0.2 for one: another host.
    pub(crate) fn start_at(host: &str, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        Self::strict(host, move |asked| if asked.path() == "/robots.txt" { robots(answer(asked)) } else { answer(asked) })
    }

    /// The same, and `/robots.txt` is answered by `answer` like everything else.
    pub(crate) fn strict(host: &str, answer: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((host, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (seen, answer) = (Arc::clone(&asked), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                std::thread::spawn(move || {
                    let _ = serve(stream, &seen, &*answer);
                });
            }
        });
        Self { address, asked }
    }

    /// An address of this server; `path` begins with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its port.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// How often a path was asked for.
    pub(crate) fn times(&self, path: &str) -> usize {
        self.asked().iter().filter(|asked| asked.path() == path).count()
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Asked>>, answer: &dyn Fn(&Asked) -> Answer) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let Some((asked, length)) = peek(&stream)? else { return Ok(()) };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(asked.clone());
        let mut answer = answer(&asked);
        while let Answer::After(delay, then) = answer {
            std::thread::sleep(delay);
            answer = *then;
        }
        // What is left unread when a socket closes makes the close a reset.
        if !matches!(answer, Answer::Reset) {
            stream.read_exact(&mut vec![0; length])?;
        }
        match answer {
            Answer::Whole(status, headers, body) => {
                let mut head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                stream.write_all(format!("{head}\r\n").as_bytes())?;
                stream.write_all(&body)?;
            }
            Answer::Long { status, headers, first, then, times } => {
                let mut head = format!("HTTP/1.1 {status} X\r\nconnection: close\r\n");
                for (name, value) in headers {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                stream.write_all(format!("{head}\r\n").as_bytes())?;
                stream.write_all(&first)?;
                return (0..times).try_for_each(|_| stream.write_all(&then));
            }
            Answer::Raw(bytes) => return stream.write_all(&bytes),
            Answer::Silence(delay) => {
                std::thread::sleep(delay);
                return Ok(());
            }
            Answer::Reset | Answer::After(..) => return Ok(()),
        }
    }
}

fn robots(answer: Answer) -> Answer {
    match answer {
        Answer::Whole(200, headers, body) if headers.iter().any(|(_, value)| value.starts_with("text/plain")) => {
            Answer::Whole(200, headers, body)
        }
        _ => Answer::status(404),
    }
}

/// The next request, left in the socket, and its length. Requests here have no bodies.
fn peek(stream: &TcpStream) -> std::io::Result<Option<(Asked, usize)>> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let got = stream.peek(&mut buffer)?;
        if got == 0 {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&buffer[..got]);
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let mut lines = head.split("\r\n");
            let mut first = lines.next().unwrap_or_default().split(' ');
            let target = first.nth(1).unwrap_or_default().to_owned();
            let headers = lines.filter_map(|line| line.split_once(": ")).map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned()));
            let asked = Asked { at: Instant::now(), peer: stream.peer_addr()?, target, headers: headers.collect() };
            return Ok(Some((asked, head.len() + 4)));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
