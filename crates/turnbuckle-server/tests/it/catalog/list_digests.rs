//! Changes of lists that several servers on one store announce.

use std::time::Duration;

use turnbuckle_server::{Prompt, Resource, Server, TaskSupport, Tool, testing::ChangeRecorder};
use turnbuckle_store::{ServerChange, Store, StoreLimits};

fn tool(description: &str) -> Tool {
    Tool::new("search", async || Ok(String::new())).description(description)
}

/// A store that does not publish equal lists twice in ten seconds.
fn store() -> Store {
    let mut limits = StoreLimits::default();
    limits.bus.repeat_window = Duration::from_secs(10);
    Store::memory_with(limits)
}

/// Two servers on one store, as two processes on a shared one, and what they announce.
fn instances() -> ([Server; 2], ChangeRecorder) {
    instances_on(&store())
}

fn instances_on(store: &Store) -> ([Server; 2], ChangeRecorder) {
    let instance = || Server::new("search", "1").store(store.clone());
    let servers = [instance(), instance()];
    let changes = ChangeRecorder::new(&servers[0]);
    (servers, changes)
}

#[tokio::test]
async fn a_change_that_two_instances_make_is_announced_once() {
    let (servers, mut changes) = instances();
    let steps: [(fn(&Server), _); 5] = [
        (
            |server| server.add_tool(tool("Search.")),
            ServerChange::ToolsChanged,
        ),
        (
            |server| server.add_tool(tool("Find.")),
            ServerChange::ToolsChanged,
        ),
        (
            |server| server.add_prompt(Prompt::new("review", async || Ok("Look it up."))),
            ServerChange::PromptsChanged,
        ),
        (
            |server| server.add_resource(Resource::text("test://a", "a", "text")),
            ServerChange::ResourcesChanged,
        ),
        (
            |server| assert!(server.remove_tool("search")),
            ServerChange::ToolsChanged,
        ),
    ];
    for (change, announced) in steps {
        change(&servers[0]);
        assert_eq!(changes.take(), [announced]);
        change(&servers[1]);
        assert_eq!(changes.take(), []);
    }
}

#[tokio::test]
async fn a_list_that_changed_back_is_announced_again() {
    let (servers, mut changes) = instances();
    for _ in 0..2 {
        for server in &servers {
            server.add_tool(tool("Search."));
        }
        for server in &servers {
            server.remove_tool("search");
        }
    }
    assert_eq!(changes.take().len(), 4);
}

#[tokio::test]
async fn a_change_that_only_legacy_clients_see_is_announced() {
    let (servers, mut changes) = instances();
    servers[0].add_tool(tool("Search."));
    servers[1].add_tool(tool("Search.").task(TaskSupport::Optional));

    assert_eq!(changes.take().len(), 2);
}

#[tokio::test]
async fn a_list_with_hidden_items_is_always_announced() {
    let (servers, mut changes) = instances();
    for server in &servers {
        server.add_tool(tool("Search.").visible_to(|principal| principal.is_some()));
    }
    assert_eq!(changes.take().len(), 2);
}

#[tokio::test]
async fn what_the_caller_announces_is_always_announced() {
    let (servers, mut changes) = instances();
    for server in &servers {
        server.tools_changed();
    }
    assert_eq!(changes.take().len(), 2);
}

#[tokio::test]
async fn the_change_of_a_mounted_server_is_announced_once_by_two_instances() {
    let store = store();
    let notes = [(); 2].map(|()| Server::new("notes", "1"));
    let parents = notes.each_ref().map(|notes| {
        let parent = Server::new("parent", "1").store(store.clone());
        parent.mount("notes", notes.clone())
    });
    let mut changes = ChangeRecorder::new(&parents[0]);

    for notes in &notes {
        notes.add_tool(tool("Search."));
    }

    assert_eq!(changes.take(), [ServerChange::ToolsChanged]);
}

/// A client may have requested the list from the second instance before it changed.
#[tokio::test]
async fn an_instance_that_changes_later_announces_it_too() {
    let (servers, mut changes) = instances_on(&Store::memory());
    for server in &servers {
        server.add_tool(tool("Search."));
        assert_eq!(changes.take(), [ServerChange::ToolsChanged]);
    }
}

#[tokio::test]
async fn equal_changes_of_two_mounted_servers_on_the_same_bus_are_two_changes() {
    let store = store();
    let server = |name| Server::new(name, "1").store(store.clone());
    let mounted = [server("notes"), server("mail")];
    let parent = server("parent")
        .mount("notes", mounted[0].clone())
        .mount("mail", mounted[1].clone());
    let mut changes = ChangeRecorder::new(&parent);

    for server in &mounted {
        server.add_tool(tool("Search."));
        assert_eq!(changes.take(), [ServerChange::ToolsChanged]);
    }
}
