//! A face beside something else at the same address.

use std::sync::Arc;

use http::header::CONTENT_LENGTH;

use super::Face;
use crate::http_server::{Answer, Asked, BodyFault, Head, Reply};

/// Gives the face what is the face's, and everything else to `rest`.
///
/// The HTTP server's bound for bodies must be the larger one of [`LARGEST_BODY`](super::LARGEST_BODY) and `rest_body`.
#[derive(Debug)]
pub(crate) struct Mounted<A> {
    pub(crate) face: Arc<Face>,
    pub(crate) rest: A,
    /// Bytes of the largest body that `rest` takes.
    pub(crate) rest_body: usize,
}

impl<A: Answer> Answer for Mounted<A> {
    async fn answer(&self, asked: Asked) -> Reply {
        if self.face.owns(&asked.path) {
            return self.face.answer(asked).await;
        }
        if asked.body.len() > self.rest_body {
            let Asked { peer, method, path, query, headers, .. } = asked;
            return self.rest.refuse_body(&Head { peer, method, path, query, headers }, BodyFault::TooLarge(self.rest_body));
        }
        self.rest.answer(asked).await
    }

    fn refuse(&self, head: &Head) -> Option<Reply> {
        if self.face.owns(&head.path) {
            return self.face.refuse(head);
        }
        self.rest.refuse(head).or_else(|| {
            let announced = head.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse::<usize>().ok()?;
            (announced > self.rest_body).then(|| self.rest.refuse_body(head, BodyFault::TooLarge(self.rest_body)))
        })
    }

    fn refuse_target(&self, most: usize) -> Reply {
        self.rest.refuse_target(most)
    }

    fn refuse_full(&self, head: &Head) -> Reply {
        if self.face.owns(&head.path) { self.face.refuse_full(head) } else { self.rest.refuse_full(head) }
    }

    fn refuse_body(&self, head: &Head, fault: BodyFault) -> Reply {
        if self.face.owns(&head.path) {
            return self.face.refuse_body(head, fault);
        }
        // The server's bound may be the face's.
        let fault = if let BodyFault::TooLarge(_) = fault { BodyFault::TooLarge(self.rest_body) } else { fault };
        self.rest.refuse_body(head, fault)
    }
}
