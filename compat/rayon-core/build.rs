//! Only there because `links` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
