//! The page in a real browser: it loads, its numbers move, and it logs nothing.

use crate::browser::Browser;
use crate::client::{Server, post, status};
use filch_service::Mode;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use std::{env, thread};

/// The text of each cell of the table.
const CELLS: &str = "[...document.querySelectorAll('#rows tr')].map(row => [...row.cells].map(it => it.textContent))";

struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

#[test]
#[ignore = "needs Chromium: `cargo xtask verify --all --only browser` runs it"]
fn the_page_shows_numbers_that_move_and_logs_nothing() {
    let server = Server::new(Mode::Queues, Duration::from_secs(60));
    let mut browser = Browser::open(&format!("http://{}/", server.address));
    let is_over = AtomicBool::new(false);
    thread::scope(|clients| {
        let _end = Set(&is_over); // also if an assertion fails
        for tenant in ["gold", "gold", "gold", "gold", "small", "small"] {
            let (server, is_over) = (&server, &is_over);
            clients.spawn(move || {
                while !is_over.load(Relaxed) {
                    let request =
                        post("/hash?rounds=20000", &format!("x-tenant: {tenant}\r\n"), b"abc");
                    // `small` has room for two requests. A request that was answered may still take
                    // up room, and then the next gets 503.
                    assert!([200, 503].contains(&status(&server.ask(request))));
                }
            });
        }
        let mut until = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
            let start = Instant::now();
            loop {
                let cells = browser.value(CELLS);
                if is_so(&cells) {
                    return cells;
                }
                assert!(start.elapsed() < Duration::from_secs(60), "{what}: {cells}");
                thread::sleep(Duration::from_millis(50));
            }
        };
        let number = |cell: &Value| -> Option<f64> {
            cell.as_str()?.split(' ').next()?.parse().ok().filter(|it| *it > 0.0)
        };
        let first = until("both tenants have shares and requests", &|cells| {
            (0..2).all(|row| number(&cells[row][3]).is_some() && number(&cells[row][4]).is_some())
        });
        until("the numbers move", &|cells| *cells != first);
        if let Some(file) = env::var_os("FILCH_SCREENSHOT") {
            thread::sleep(Duration::from_secs(4));
            browser.screenshot(file.as_ref());
        }
    });
    assert_eq!(browser.complaints, Vec::<String>::new());
}
