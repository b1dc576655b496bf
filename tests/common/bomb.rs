//! A value that panics when it is dropped: a payload of a panic, or a capture of a closure.

pub(crate) struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("expected: dropped");
    }
}
