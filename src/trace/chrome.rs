//! Chrome's trace event format: JSON that Perfetto reads too.

use super::slice::Slice;
use crate::sync::Text;
use alloc::format;
use core::fmt::{self, Write};
use core::time::Duration;
use std::io;

/// Writes one JSON object, with one event on each line.
pub(super) fn write(
    out: &mut (impl io::Write + ?Sized),
    slices: &[Slice],
    threads: &[Text],
    lost: u64,
) -> io::Result<()> {
    writeln!(out, "{{\"traceEvents\":[")?;
    write!(out, r#"{{"ph":"M","pid":1,"name":"process_name","args":{{"name":"filch"}}}}"#)?;
    for (track, thread) in threads.iter().enumerate() {
        let on = format!(r#""ph":"M","pid":1,"tid":{track}"#);
        let name = Json(thread);
        write!(out, ",\n{{{on},\"name\":\"thread_name\",\"args\":{{\"name\":{name}}}}}")?;
        write!(
            out,
            ",\n{{{on},\"name\":\"thread_sort_index\",\"args\":{{\"sort_index\":{track}}}}}"
        )?;
    }
    for (number, slice) in slices.iter().enumerate() {
        write_slice(out, number, slice)?;
    }
    writeln!(out, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{{\"lost\":{lost}}}}}")
}

/// Writes the event of a slice. If the slice has a spawning track, also writes an arrow from that
/// track.
fn write_slice(
    out: &mut (impl io::Write + ?Sized),
    number: usize,
    slice: &Slice,
) -> io::Result<()> {
    let (name, track) = (Json(&slice.name), slice.track);
    let (began, time) = (Micros(slice.began), Micros(slice.ended.saturating_sub(slice.began)));
    let on = format!(r#""pid":1,"tid":{track},"name":{name},"ts":{began}"#);
    let Some(spawned) = slice.spawned else {
        return write!(out, ",\n{{\"ph\":\"X\",\"cat\":\"idle\",{on},\"dur\":{time}}}");
    };
    let waited = Micros(slice.began.saturating_sub(spawned));
    let args = format!(r#""args":{{"waited_us":{waited}}}"#);
    write!(out, ",\n{{\"ph\":\"X\",\"cat\":\"task\",{on},\"dur\":{time},{args}}}")?;
    let Some(from) = slice.spawned_on else { return Ok(()) };
    let (arrow, at) = (format!(r#""cat":"spawn","id":{number}"#), Micros(spawned));
    write!(
        out,
        ",\n{{\"ph\":\"s\",{arrow},\"pid\":1,\"tid\":{from},\"name\":{name},\"ts\":{at}}}"
    )?;
    write!(out, ",\n{{\"ph\":\"f\",\"bp\":\"e\",{arrow},{on}}}")
}

/// A text, quoted and escaped for JSON.
struct Json<'a>(&'a str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' | '\\' => write!(f, "\\{c}")?,
                c if c < ' ' => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// A time in microseconds, with three decimals.
struct Micros(Duration);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        write!(f, "{}.{:03}", nanos / 1000, nanos % 1000)
    }
}
