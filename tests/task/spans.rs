//! Spans of `tracing` that go with tasks.

use filch::task::{CurrentSpan, TaskSpan};
use filch::{FairScheduler, ThreadPool};
use std::sync::{Arc, LazyLock, Mutex};
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;

/// A span's name, and that of its parent.
type Noted = (String, Option<String>);

/// Notes each span when it is made.
#[derive(Clone, Default)]
struct Parents(Arc<Mutex<Vec<Noted>>>);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Parents {
    fn on_new_span(&self, _: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let span = context.span(id).unwrap();
        let parent = span.parent().map(|it| it.name().to_owned());
        self.0.lock().unwrap().push((span.name().to_owned(), parent));
    }
}

/// The one subscriber of this process: workers look for it too.
fn noted() -> &'static Parents {
    static NOTED: LazyLock<Parents> = LazyLock::new(|| {
        let parents = Parents::default();
        let subscriber = tracing_subscriber::registry().with(parents.clone());
        tracing::subscriber::set_global_default(subscriber).unwrap();
        parents
    });
    &NOTED
}

fn name_of_current() -> Option<&'static str> {
    tracing::Span::current().metadata().map(|it| it.name())
}

#[test]
fn the_span_of_a_task_is_a_child_of_its_submitters() {
    let noted = noted();
    let fair = FairScheduler::over(ThreadPool::new(1).unwrap());
    let queue = fair.queue("a").context(TaskSpan::of("a")).build().unwrap();
    let request = tracing::info_span!("request of a");
    let task = request.in_scope(|| queue.spawn(name_of_current));
    assert_eq!(task.join().unwrap(), Some("task"), "it runs in its own");
    let outside = queue.spawn(|| ());
    outside.join().unwrap();

    let noted = noted.0.lock().unwrap();
    let tasks: Vec<_> = noted.iter().filter(|(name, _)| name == "task").map(|it| &it.1).collect();
    assert_eq!(tasks, [&Some("request of a".to_owned()), &None]);
}

#[test]
fn a_task_runs_in_the_span_that_was_current() {
    noted();
    let pool = ThreadPool::builder().num_threads(1).context(CurrentSpan).build().unwrap();
    let request = tracing::info_span!("request of b");
    let task = request.in_scope(|| pool.spawn(name_of_current));
    assert_eq!(task.join().unwrap(), Some("request of b"));
    assert_eq!(pool.spawn(name_of_current).join().unwrap(), None, "and leaves it");
}
