//! The end of what runs tasks, for those who want to know of it.

use super::CancelToken;
use crate::sync::lock::Mutex;
use crate::sync::thread;

/// A token that is cancelled when something has ended. Made when somebody first asks for it.
#[derive(Default)]
pub(crate) struct End(Mutex<Option<CancelToken>>);

impl End {
    /// The token. `has_ended` is asked under a lock: whoever brings the end about tells it afterwards.
    pub(crate) fn token(&self, has_ended: impl FnOnce() -> bool) -> CancelToken {
        let mut end = self.0.lock();
        let token = end.get_or_insert_with(CancelToken::new).clone();
        let has_ended = has_ended();
        drop(end);
        if has_ended {
            token.cancel();
        }
        token
    }

    /// It has ended. An error is what a listener has panicked with: they are the user's.
    pub(crate) fn tell(&self) -> Result<(), thread::Payload> {
        let end = self.0.lock().take();
        end.map_or(Ok(()), |token| thread::catch(|| _ = token.cancel()))
    }

    /// Another comes in its place, of which nobody knows yet.
    pub(crate) fn forget(&self) {
        *self.0.lock() = None;
    }
}
