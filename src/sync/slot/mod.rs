//! A `T` that may be copied while it is overwritten.
//!
//! A thief copies an item before it knows whether the item is its own. If the owner writes the slot
//! again meanwhile, the copy may be torn. So a copy, a `Copied`, must not be opened until a claim
//! has shown that the slot was not written during the copy. There are three forms of a slot.
//!
//! `words`, *on the machine*: a slot is copied word by word, with relaxed atomic operations. The
//! memory may be uninitialised: padding is, and so is a slot that was never written.
//!
//! `model`, *in a model*: a slot is one atomic pointer to a payload in a loom cell. A copy of the
//! slot is a copy of the pointer. Only opening the copy touches the payload, so loom reports an
//! item that is opened before its writer is done. An assertion fails if an item is taken twice or
//! was never written. Unlike on the machine, copies are never torn. But on the machine no thread
//! opens a torn copy, because the copy of a claimed item is whole (I5 of the deque).
//!
//! `locked`, *where `words` cannot run*: `words` needs inline assembly, which WebAssembly does not
//! have and Miri does not run. Here a thread holds one lock of the process during each copy. So
//! copies are never torn, and the deque is not lock-free. `--cfg filch_locked_slots` selects this
//! form for tests elsewhere.
//!
//! # Invariants
//!
//! - **I1** Each access to the contents of a shared slot is atomic in `words`, and under the lock
//!   in `locked`. The only exception is `peek`, whose caller promises that no thread writes.
//! - **I2** The contents of a slot are a `MaybeUninit`, which may hold no item. A copy of the
//!   contents becomes an item only by `assume_init`.
//! - **I3** In `words`, each piece lies within a `T`, at an offset that is a multiple of its size.
//! - **I4** In the model, no borrow of `seen`, a slot's list of its payloads, contains an operation
//!   of loom's. loom runs one thread at a time, and switches threads only at its operations.
//! - **I5** In the model, a payload is shared only after its item was written. Only the thread that
//!   sets `taken` takes the item. loom reports a taking that is not ordered after the writing.

#[cfg(loom)]
mod model;
#[cfg(loom)]
pub use model::{Copied, Slot};

#[cfg(not(loom))]
mod copied;

#[cfg(all(not(loom), any(miri, target_family = "wasm", filch_locked_slots)))]
mod locked;
#[cfg(all(not(loom), any(miri, target_family = "wasm", filch_locked_slots)))]
pub(crate) use locked::Slot;

#[cfg(not(any(loom, miri, target_family = "wasm", filch_locked_slots)))]
mod words;
#[cfg(not(any(loom, miri, target_family = "wasm", filch_locked_slots)))]
pub(crate) use words::Slot;
