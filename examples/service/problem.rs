//! A response for a bad request, or for one that the server cannot answer: a status and a sentence.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use filch_tower::Error;
use std::borrow::Cow;
use std::time::Duration;

/// A response that is no result.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    sentence: Cow<'static, str>,
    retry_after: Option<Duration>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<Cow<'static, str>>) -> Self {
        Problem { status, sentence: sentence.into(), retry_after: None }
    }

    /// Returns the response to a request that is wrong in itself.
    pub(crate) fn bad(sentence: impl Into<Cow<'static, str>>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, sentence)
    }

    pub(crate) fn expired() -> Self {
        Problem::from(Error::Expired)
    }

    pub(crate) fn panicked() -> Self {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the computation failed")
    }

    pub(crate) fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }
}

impl From<Error<Problem>> for Problem {
    fn from(error: Error<Problem>) -> Self {
        let status = error.status();
        let sentence = match error {
            Error::Inner(problem) => return problem,
            // The payload of a panic is for the log, not for the client.
            Error::Panicked(_) => return Problem::panicked(),
            Error::NoQueue => "no queue serves this request".into(),
            Error::Expired => "the request had not begun by its deadline".into(),
            Error::Full { retry_after } => {
                let seconds = retry_after.as_secs();
                let sentence = format!("this tenant's queue is full; try again in {seconds} s");
                return Problem::new(status, sentence).retry_after(retry_after);
            }
            Error::Refused(_) | Error::Cancelled(_) => "the server is stopping".into(),
            _ => "the server cannot take this request".into(),
        };
        Problem { status, sentence, retry_after: None }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, format!("{}\n", self.sentence)).into_response();
        if let Some(time) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(time.as_secs().max(1)));
        }
        response
    }
}
