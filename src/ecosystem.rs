//! Implements the traits for spawning futures of `futures-task` and `hyper` for filch's executors.

use crate::executor::TaskBuilder;
use crate::fair::{FairScheduler, Queue};
use crate::pool::{LockedPool, ThreadPool};
use crate::sim::StepperHandle;

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
                    let spawned = TaskBuilder::on(self).try_spawn_future(future);
                    spawned.map(drop).map_err(|_| futures_task::SpawnError::shutdown())
                }
            }

            /// Spawns a future without a handle, and drops the future if the executor refuses it.
            #[cfg(feature = "hyper")]
            #[cfg_attr(docsrs, doc(cfg(feature = "hyper")))]
            impl<F> hyper::rt::Executor<F> for $Spawner
            where
                F: core::future::Future + Send + 'static,
                F::Output: Send + 'static,
            {
                fn execute(&self, future: F) {
                    drop(TaskBuilder::on(self).spawn_future(future));
                }
            }
        )*
    };
}
spawners!(ThreadPool, LockedPool, FairScheduler, Queue, StepperHandle);
