//! What panics when it is dropped: a payload of a panic, or what a closure holds.

pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("expected: dropped");
    }
}
