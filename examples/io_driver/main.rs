//! A worker that sleeps in an I/O driver. Data to read wakes the worker, and so does a task in an
//! injector.
//!
//! ```console
//! cargo run --release --example io_driver            # 1000 messages and 1000 tasks
//! cargo run --release --example io_driver -- 50
//! ```
//!
//! The driver is a `polling::Poller` that implements `Park`. Parking waits for events, and
//! unparking calls the poller's `notify`, which ends that wait.

use filch::Injector;
use filch::idle::{EventCount, Park};
use polling::{Event, Events, Poller};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;
use std::{env, io, process, thread};

/// A poller that a worker sleeps in.
struct Driver {
    poller: Arc<Poller>,
    unparker: Waker,
    events: Events,
}

/// Interrupts the wait.
struct Interrupt(Arc<Poller>);

impl Wake for Interrupt {
    fn wake(self: Arc<Self>) {
        self.0.notify().expect("the poller can be notified");
    }
}

impl Driver {
    fn new() -> io::Result<Self> {
        let poller = Arc::new(Poller::new()?);
        let unparker = Waker::from(Arc::new(Interrupt(Arc::clone(&poller))));
        Ok(Driver { poller, unparker, events: Events::new() })
    }
}

impl Park for Driver {
    fn park(&mut self, timeout: Option<Duration>) {
        // After an error the park returns too, and the worker looks at everything again.
        if let Err(error) = self.poller.wait(&mut self.events, timeout) {
            eprintln!("waiting for events failed: {error}");
        }
    }

    fn unparker(&self) -> Waker {
        self.unparker.clone()
    }
}

/// How many tasks a worker has run, and how many messages it has read.
#[derive(Default, PartialEq, Debug)]
struct Done {
    tasks: usize,
    messages: usize,
}

/// Runs tasks and reads messages until the worker has done as many as `wanted`.
fn work(
    tasks: &Injector<usize>,
    changes: &EventCount,
    mut socket: TcpStream,
    wanted: &Done,
) -> io::Result<Done> {
    const SOCKET: usize = 0;
    let (mut driver, mut done) = (Driver::new()?, Done::default());
    socket.set_nonblocking(true)?;
    // SAFETY: a socket must leave the poller before it closes. `delete` below removes it. After an
    // early return, the local `driver` is dropped before the parameter `socket`.
    unsafe { driver.poller.add(&socket, Event::readable(SOCKET)) }?;
    while done != *wanted {
        if tasks.pop().is_some() {
            done.tasks += 1;
            continue;
        }
        let prepared = changes.prepare();
        if tasks.pop().is_some() {
            done.tasks += 1;
            continue; // dropping `prepared` cancels
        }
        driver.events.clear();
        // A notification, an event or both may have ended the sleep. So the worker looks for a
        // message here, and for a task at the start of the loop.
        prepared.commit_in(&mut driver, None);
        let mut buffer = [0; 64];
        match socket.read(&mut buffer) {
            Ok(count) => done.messages += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        // The poller reports an event once, and this call asks it to report again.
        driver.poller.modify(&socket, Event::readable(SOCKET))?;
    }
    driver.poller.delete(&socket)?;
    Ok(done)
}

fn main() -> io::Result<()> {
    let count = match env::args().nth(1).map(|count| count.parse()) {
        None => 1000,
        Some(Ok(count)) => count,
        Some(Err(_)) => {
            eprintln!("usage: io_driver [NUMBER OF MESSAGES AND TASKS]");
            process::exit(2);
        }
    };
    let (tasks, changes) = (Injector::new(), EventCount::new());
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    client.set_nodelay(true)?;
    let (socket, _) = listener.accept()?;
    let wanted = Done { tasks: count, messages: count };

    let done = thread::scope(|scope| {
        let worker = scope.spawn(|| work(&tasks, &changes, socket, &wanted));
        scope.spawn(|| {
            for task in 0..count {
                tasks.push(task);
                changes.notify_one();
                thread::yield_now();
            }
        });
        for _ in 0..count {
            client.write_all(b"!")?; // a message of one byte
            thread::yield_now();
        }
        worker.join().expect("the worker does not panic")
    })?;
    println!(
        "one worker, asleep in a poller, ran {} tasks and read {} messages",
        done.tasks, done.messages
    );
    Ok(())
}
