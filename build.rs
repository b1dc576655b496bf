//! Tells rustdoc about a model build, and the modules where `for_models` is.
//!
//! `RUSTFLAGS="--cfg loom"` reaches rustc but not rustdoc, so doctests would run outside a model
//! against a library that works only inside one. `lib.rs` leaves itself out of that combination.
//! The parts that models test by themselves are public in a model build only.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(filch_loom_build)");
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var_os("CARGO_CFG_LOOM").is_some() {
        println!("cargo::rustc-cfg=filch_loom_build");
    }
}
