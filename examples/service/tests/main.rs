//! Tests of the service, over sockets: each starts a server of its own in this process.

mod bad_input;
mod browser;
mod client;
mod ends;
mod page;
mod random;
mod results;
mod silent;
mod soak;
