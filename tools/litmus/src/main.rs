//! `litmus FILE…`: judges litmus tests, and fails unless each claims exactly what is found.

use std::env;
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    let files: Vec<String> = env::args().skip(1).collect();
    if files.is_empty() || files[0].starts_with('-') {
        eprintln!("usage: litmus FILE…");
        return ExitCode::FAILURE;
    }
    let mut is_well = true;
    for file in files {
        let text = fs::read_to_string(&file).map_err(Into::into);
        match text.and_then(|text| litmus::examine(&text)) {
            Ok(findings) => {
                println!("{}: {} executions", findings.name, findings.executions);
                findings.found.iter().for_each(|it| println!("  {it}"));
                let objections = findings.objections();
                objections.iter().for_each(|it| eprintln!("{file}: {it}"));
                is_well &= objections.is_empty();
            }
            Err(reason) => {
                eprintln!("{file}: {reason}");
                is_well = false;
            }
        }
    }
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
