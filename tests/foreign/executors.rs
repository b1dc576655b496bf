//! Other people's pools as executors, by the suite for all: `from_fn` makes them.

use crate::every_executor::over_executors;
use crate::pools::{on_rayon, on_tokio};

over_executors! {
    one_rayon_thread: on_rayon(1);
    three_rayon_threads: on_rayon(3);
    one_tokio_thread: on_tokio(1);
    three_tokio_threads: on_tokio(3);
}
