//! Exists only because Cargo requires a build script of a package with `links`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
