//! Other people's pools as executors, by the suite for all: `from_fn` makes them.

mod others;
#[path = "../../tests/promises/mod.rs"]
mod promises;

use others::{on_rayon, on_tokio};
use promises::over_executors;

over_executors! {
    one_rayon_thread: on_rayon(1);
    three_rayon_threads: on_rayon(3);
    one_tokio_thread: on_tokio(1);
    three_tokio_threads: on_tokio(3);
}
