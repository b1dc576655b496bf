//! The traits by which the benchmarks call each deque, and an `impl` for each contender.

use filch::deque::Flavor;

/// A deque as its owner sees it.
pub trait Deque<T>: Send + 'static {
    /// The contender's name in the tables.
    const NAME: &'static str;
    /// The handle by which other threads steal from the deque.
    type Thief: Thief<T, Self>;
    /// Returns an empty deque. It has room for [`CAPACITY`] items, or grows.
    fn new() -> Self;
    /// Pushes an item.
    fn push(&self, item: T);
    /// Pops the owner's next item.
    fn pop(&self) -> Option<T>;
    /// Returns a handle for a thief.
    fn thief(&self) -> Self::Thief;
}

/// The operations of a thief on a deque of type `D`.
pub trait Thief<T, D: ?Sized>: Send + 'static {
    /// Makes one attempt to steal an item.
    fn steal(&self) -> Option<T>;
    /// Makes one attempt to move half of the items, and at most 32, to `dest`. Returns the number
    /// of moved items. If the contender does not report the number, returns 32 for a success.
    fn batch(&self, dest: &D) -> usize;
}

/// The largest number of items in any scenario, which is the capacity of the bounded deques.
pub const CAPACITY: usize = 1 << 17;

/// filch's deque.
#[derive(Debug)]
pub struct Filch<T, const LIFO: bool>(filch::Worker<T>);

impl<T: Send + 'static, const LIFO: bool> Deque<T> for Filch<T, LIFO> {
    const NAME: &'static str = "filch";
    type Thief = filch::Stealer<T>;
    fn new() -> Self {
        let flavor = if LIFO { Flavor::Lifo } else { Flavor::Fifo };
        Filch(filch::deque::Builder::new(flavor).build())
    }
    #[inline]
    fn push(&self, item: T) {
        self.0.push(item);
    }
    #[inline]
    fn pop(&self) -> Option<T> {
        self.0.pop()
    }
    fn thief(&self) -> Self::Thief {
        self.0.stealer()
    }
}

impl<T: Send + 'static, const LIFO: bool> Thief<T, Filch<T, LIFO>> for filch::Stealer<T> {
    #[inline]
    fn steal(&self) -> Option<T> {
        filch::Stealer::steal(self).success()
    }
    #[inline]
    fn batch(&self, dest: &Filch<T, LIFO>) -> usize {
        self.steal_batch(&dest.0).success().map_or(0, |()| 32)
    }
}

/// crossbeam-deque's deque.
#[derive(Debug)]
pub struct Crossbeam<T, const LIFO: bool>(crossbeam_deque::Worker<T>);

impl<T: Send + 'static, const LIFO: bool> Deque<T> for Crossbeam<T, LIFO> {
    const NAME: &'static str = "crossbeam";
    type Thief = crossbeam_deque::Stealer<T>;
    fn new() -> Self {
        let new = if LIFO {
            crossbeam_deque::Worker::new_lifo
        } else {
            crossbeam_deque::Worker::new_fifo
        };
        Crossbeam(new())
    }
    #[inline]
    fn push(&self, item: T) {
        self.0.push(item);
    }
    #[inline]
    fn pop(&self) -> Option<T> {
        self.0.pop()
    }
    fn thief(&self) -> Self::Thief {
        self.0.stealer()
    }
}

impl<T: Send + 'static, const LIFO: bool> Thief<T, Crossbeam<T, LIFO>>
    for crossbeam_deque::Stealer<T>
{
    #[inline]
    fn steal(&self) -> Option<T> {
        crossbeam_deque::Stealer::steal(self).success()
    }
    #[inline]
    fn batch(&self, dest: &Crossbeam<T, LIFO>) -> usize {
        self.steal_batch(&dest.0).success().map_or(0, |()| 32)
    }
}

macro_rules! st3 {
    ($Name:ident, $Thief:ident, $module:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Debug)]
        pub struct $Name<T: Send + 'static>(st3::$module::Worker<T>);

        /// A thief with a deque of its own, because st3 steals only from one deque into another.
        #[derive(Debug)]
        pub struct $Thief<T: Send + 'static>(st3::$module::Stealer<T>, st3::$module::Worker<T>);

        impl<T: Send + 'static> Deque<T> for $Name<T> {
            const NAME: &'static str = "st3";
            type Thief = $Thief<T>;
            fn new() -> Self {
                $Name(st3::$module::Worker::new(CAPACITY))
            }
            #[inline]
            fn push(&self, item: T) {
                assert!(self.0.push(item).is_ok(), "a full deque would be a benchmark of `Err`");
            }
            #[inline]
            fn pop(&self) -> Option<T> {
                self.0.pop()
            }
            fn thief(&self) -> Self::Thief {
                $Thief(self.0.stealer(), st3::$module::Worker::new(64))
            }
        }

        impl<T: Send + 'static> Thief<T, $Name<T>> for $Thief<T> {
            #[inline]
            fn steal(&self) -> Option<T> {
                self.0.steal_and_pop(&self.1, |_| 1).ok().map(|(item, _)| item)
            }
            #[inline]
            fn batch(&self, dest: &$Name<T>) -> usize {
                self.0.steal(&dest.0, |len| len.div_ceil(2).min(32)).unwrap_or(0)
            }
        }
    };
}

st3!(St3Lifo, St3LifoThief, lifo, "st3's LIFO deque: bounded.");
st3!(St3Fifo, St3FifoThief, fifo, "st3's FIFO deque: bounded.");
