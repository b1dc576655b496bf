//! Implements the traits for spawning futures of `futures-task` and `hyper` for filch's executors.

use crate::executor::{Executor, Futures};
use crate::fair::{FairScheduler, Queue};
use crate::pool::{LockedPool, ThreadPool};
use crate::sim::StepperHandle;
use crate::task::{Flow, NewFuture};
use core::future::Future;

/// Spawns a future without a handle. Returns whether the executor accepts the future.
fn spawn<F>(executor: &dyn Executor, future: F) -> bool
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let Some(Futures(polling)) = executor.futures() else { return false };
    let context = executor.context().map(Flow::capture);
    let new = NewFuture { polling, token: None, context, member: None, deadline: None };
    new.spawn_detached(future).is_ok()
}

/// Implements `futures_task::Spawn` and `hyper::rt::Executor` for each type in the list.
macro_rules! spawners {
    ($($Spawner:ty),*) => {
        $(
            /// Spawns a future without a handle. If the executor refuses the future, the error is
            /// "shut down", the only error of the trait.
            #[cfg(feature = "futures")]
            #[cfg_attr(docsrs, doc(cfg(feature = "futures")))]
            impl futures_task::Spawn for $Spawner {
                fn spawn_obj(
                    &self,
                    future: futures_task::FutureObj<'static, ()>,
                ) -> Result<(), futures_task::SpawnError> {
                    spawn(self, future).then_some(()).ok_or_else(futures_task::SpawnError::shutdown)
                }
            }

            /// Spawns a future without a handle, and drops the future if the executor refuses it.
            #[cfg(feature = "hyper")]
            #[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
            impl<F> hyper::rt::Executor<F> for $Spawner
            where
                F: Future + Send + 'static,
                F::Output: Send + 'static,
            {
                fn execute(&self, future: F) {
                    spawn(self, future);
                }
            }
        )*
    };
}
spawners!(ThreadPool, LockedPool, FairScheduler, Queue, StepperHandle);
