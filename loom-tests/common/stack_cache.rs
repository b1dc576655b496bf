//! Keeps coroutine stacks from one execution to the next, because models then run three times
//! faster.
//!
//! loom maps, protects and unmaps a stack for every modelled thread of every execution, and spends
//! most of its time there. This file replaces libc's `mmap`, `mprotect` and `munmap` in the test
//! binary. When a mapping that looks like such a stack is unmapped, the file keeps it with its
//! guard page, and gives it out again. The executions stay the same.

use libc::{c_int, c_long, c_void, off_t, size_t};
use std::hint::spin_loop;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering::Acquire, Ordering::Release};

/// The largest mapping, in bytes, that is taken for a stack. loom's stacks are smaller, and blocks
/// that the heap maps are larger.
const LARGEST: size_t = 64 << 10;
const PLACES: usize = 64;

#[derive(Clone, Copy)]
struct Stack {
    address: *mut c_void,
    length: size_t,
    guarded: bool,
    in_use: bool,
}

struct Kept([Stack; PLACES]);

static LOCKED: AtomicBool = AtomicBool::new(false);
static mut KEPT: Kept =
    Kept([Stack { address: null_mut(), length: 0, guarded: false, in_use: false }; PLACES]);

/// Runs `f` on the stack in the table for which `wanted` holds, if there is one.
///
/// The table has a lock of its own, since libc's locks may map memory.
fn with<R>(wanted: impl Fn(&Stack) -> bool, f: impl FnOnce(&mut Stack) -> R) -> Option<R> {
    while LOCKED.swap(true, Acquire) {
        spin_loop();
    }
    let kept = &raw mut KEPT;
    // SAFETY: this thread has the lock, and neither closure takes it again.
    let stacks = unsafe { &mut (*kept).0 };
    let result = stacks.iter_mut().find(|it| wanted(it)).map(f);
    LOCKED.store(false, Release);
    result
}

/// # Safety
///
/// The conditions of `mmap`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mmap(
    address: *mut c_void,
    length: size_t,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: off_t,
) -> *mut c_void {
    let is_stack = flags & libc::MAP_STACK != 0 && length <= LARGEST && address.is_null();
    if is_stack {
        let free = |it: &Stack| !it.in_use && it.length == length;
        let again = with(free, |it| {
            it.in_use = true;
            it.address
        });
        if let Some(stack) = again {
            return stack;
        }
    }
    // SAFETY: the arguments are the caller's, who meets the conditions of `mmap`.
    let mapped =
        unsafe { libc::syscall(libc::SYS_mmap, address, length, protection, flags, file, offset) };
    let mapped = mapped as *mut c_void;
    if is_stack && mapped != libc::MAP_FAILED {
        let new = Stack { address: mapped, length, guarded: false, in_use: true };
        with(|it| it.length == 0, |it| *it = new);
    }
    mapped
}

/// # Safety
///
/// The conditions of `mprotect`.
#[unsafe(no_mangle)]
unsafe extern "C" fn mprotect(address: *mut c_void, length: size_t, protection: c_int) -> c_int {
    let ours = |it: &Stack| it.length > 0 && it.address == address;
    let guarded = with(ours, |it| std::mem::replace(&mut it.guarded, true));
    if guarded == Some(true) {
        return 0;
    }
    // SAFETY: the arguments are the caller's, who meets the conditions of `mprotect`.
    unsafe { as_int(libc::syscall(libc::SYS_mprotect, address, length, protection)) }
}

/// # Safety
///
/// The conditions of `munmap`.
#[unsafe(no_mangle)]
unsafe extern "C" fn munmap(address: *mut c_void, length: size_t) -> c_int {
    let ours = |it: &Stack| it.in_use && it.address == address && it.length == length;
    if with(ours, |it| it.in_use = false).is_some() {
        return 0;
    }
    // SAFETY: the arguments are the caller's, who meets the conditions of `munmap`.
    unsafe { as_int(libc::syscall(libc::SYS_munmap, address, length)) }
}

fn as_int(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}
