//! Headless Chromium, driven by its DevTools protocol.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, process};
use tungstenite::{Message, WebSocket};

/// Chromium's arguments. Three keep it from asking outside hosts, which a closed network refuses.
const ARGUMENTS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1000,640",
    "--remote-debugging-port=0",
];

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    profile: PathBuf,
    socket: WebSocket<TcpStream>,
    sent: u64,
    session: Value,
    /// The messages that the page has logged, and its exceptions.
    pub(crate) complaints: Vec<String>,
}

impl Browser {
    /// Starts Chromium and opens the page.
    pub(crate) fn open(page: &str) -> Self {
        let names = ["chromium", "chromium-browser", "google-chrome"];
        let folders =
            || env::split_paths(&env::var_os("PATH").unwrap_or_default()).collect::<Vec<_>>();
        let program =
            names.iter().flat_map(|name| folders().into_iter().map(move |it| it.join(name)));
        let program = program.into_iter().find(|it| it.is_file()).expect("Chromium is on the path");
        let profile = env::temp_dir().join(format!("filch-browser-{}", process::id()));
        let mut command = Command::new(program);
        command.args(ARGUMENTS).arg(format!("--user-data-dir={}", profile.display()));
        let mut process = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.unwrap().strip_prefix("DevTools listening on ")?.to_owned()))
            .expect("Chromium says where it listens");
        // The browser must not block because no thread reads its output.
        std::thread::spawn(move || lines.for_each(drop));
        let host = address.trim_start_matches("ws://").split('/').next().unwrap();
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (socket, _) = tungstenite::client(&address, stream).unwrap();
        let (session, complaints) = (Value::Null, Vec::new());
        let mut browser = Browser { process, profile, socket, sent: 0, session, complaints };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        browser.session = browser.call("Target.attachToTarget", attach)["sessionId"].take();
        for domain in ["Runtime.enable", "Log.enable", "Page.enable"] {
            browser.call(domain, json!({}));
        }
        browser.call("Page.navigate", json!({ "url": page }));
        browser
    }

    /// Returns the value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let arguments = json!({ "expression": expression, "returnByValue": true });
        self.call("Runtime.evaluate", arguments)["result"]["value"].take()
    }

    /// Writes a picture of the page.
    pub(crate) fn screenshot(&mut self, file: &Path) {
        let picture = self.call("Page.captureScreenshot", json!({}));
        let picture = picture["data"].as_str().expect("a picture").as_bytes();
        fs::write(file, data_encoding::BASE64.decode(picture).unwrap()).unwrap();
    }

    fn call(&mut self, method: &str, arguments: Value) -> Value {
        self.sent += 1;
        let mut message = json!({ "id": self.sent, "method": method, "params": arguments });
        if !self.session.is_null() {
            message["sessionId"] = self.session.clone();
        }
        self.socket.send(Message::text(message.to_string())).unwrap();
        loop {
            let answer = self.socket.read().expect("Chromium answers within a minute");
            let Ok(text) = answer.into_text() else { continue };
            let Ok(mut answer) = serde_json::from_str::<Value>(&text) else { continue };
            match answer["method"].as_str() {
                Some("Runtime.consoleAPICalled" | "Runtime.exceptionThrown" | "Log.entryAdded") => {
                    self.complaints.push(answer["params"].to_string());
                }
                _ if answer["id"] == self.sent => {
                    assert!(answer["error"].is_null(), "{method}: {answer}");
                    return answer["result"].take();
                }
                _ => {}
            }
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}
