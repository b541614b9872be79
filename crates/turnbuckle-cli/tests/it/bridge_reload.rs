//! Reloads of `turnbuckle bridge`.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    sandbox::Sandbox,
    serve_process::{ServeProcess, get, processes_with},
};

/// The path of the binary.
const BINARY: &str = env!("CARGO_BIN_EXE_turnbuckle");

/// The file of the user, below the home directory.
const FILE: &str = ".config/turnbuckle/bridge.toml";

/// The time that a reload has, in a busy machine.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(30);

fn program(name: &str, data: &str) -> String {
    format!(
        "[servers.{name}]\ncommand = \"{BINARY}\"\nargs = [\"serve\", \"--stdio\", \"--data\", \"{data}\"]\nshare = \"all\"\n"
    )
}

/// Waits until the list of tools fits.
fn wait_for_tools(sandbox: &Sandbox, bridge: &ServeProcess, fits: impl Fn(&str) -> bool) {
    let started_at = Instant::now();
    loop {
        let listed = sandbox.run(&["tools", &bridge.address]);
        if fits(&listed) {
            return;
        }
        assert!(started_at.elapsed() < RELOAD_TIMEOUT, "{listed}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Waits until a path is not found.
fn wait_for_404(url: &str) {
    let started_at = Instant::now();
    while !get(url).starts_with("HTTP/1.1 404") {
        assert!(started_at.elapsed() < RELOAD_TIMEOUT, "{url}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_changed_file_adds_and_removes_servers_and_keeps_the_others() {
    let sandbox = Sandbox::new();
    let data = |name: &str| sandbox.path().join(name).display().to_string();
    let (kept, other) = (
        program("kept", &data("kept-data")),
        program("other", &data("other-data")),
    );
    sandbox.write(FILE, &kept);
    let bridge = ServeProcess::bridge(&sandbox, &[]);
    wait_for_tools(&sandbox, &bridge, |tools| tools.contains("checkpoint_list"));
    let before = processes_with(&data("kept-data"));

    sandbox.write(FILE, &format!("{kept}{other}"));
    wait_for_tools(&sandbox, &bridge, |tools| {
        tools.contains("kept_checkpoint_list") && tools.contains("other_checkpoint_list")
    });
    assert!(!processes_with(&data("other-data")).is_empty());
    let other_alone = format!("{}/other", bridge.address);
    let listed = sandbox.run(&["tools", &other_alone]);
    assert!(listed.contains("checkpoint_list"), "{listed}");
    assert!(!listed.contains("other_"), "{listed}");

    // Broken: everything stays, and the error is printed.
    sandbox.write(FILE, &format!("{kept}{other}nonsense = 1\n"));
    bridge.signal(Signal::HUP);
    bridge.wait_for_stderr("the servers stay as they are");
    wait_for_tools(&sandbox, &bridge, |tools| {
        tools.contains("other_checkpoint_list")
    });

    sandbox.write(FILE, &kept);
    bridge.signal(Signal::HUP);
    wait_for_tools(&sandbox, &bridge, |tools| !tools.contains("other_"));
    wait_for_404(&other_alone);
    let kept_alone = format!("{}/kept", bridge.address);
    let listed = sandbox.run(&["tools", &kept_alone]);
    assert!(listed.contains("checkpoint_list"), "{listed}");
    let started_at = Instant::now();
    while !processes_with(&data("other-data")).is_empty() {
        assert!(
            started_at.elapsed() < RELOAD_TIMEOUT,
            "the program is still there"
        );
        thread::sleep(Duration::from_millis(50));
    }

    assert_eq!(processes_with(&data("kept-data")), before);
    let stderr = bridge.stop();
    assert!(stderr.contains("servers: added other"), "{stderr}");
    assert!(stderr.contains("servers: removed other"), "{stderr}");
    assert!(stderr.contains("the servers stay as they are"), "{stderr}");
    assert!(
        stderr.contains("bridge.toml:9:1: unknown field `nonsense`"),
        "{stderr}"
    );
}
