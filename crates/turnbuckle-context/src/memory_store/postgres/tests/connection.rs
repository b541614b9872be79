use std::net::{Ipv4Addr, TcpListener};

use super::*;

/// Connects and returns the error with its causes.
async fn error(url: &str) -> (PostgresError, String) {
    let options = PostgresOptions::from_url(url).unwrap();
    let error = PostgresMemoryStore::connect(options).await.unwrap_err();
    let text = turnbuckle_text::error_chain(&error);
    assert!(!text.contains("s3cret"), "{text}");
    (error, text)
}

#[tokio::test]
async fn a_server_that_is_not_there_is_one_clear_error() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let (error, text) = error(&format!("postgres://ada:s3cret@{address}/memory")).await;
    assert!(
        matches!(error, PostgresError::Unreachable { .. }),
        "{error:?}"
    );
    assert!(
        text.contains(&address.to_string()) && text.contains("cannot be reached"),
        "{text}"
    );
}

#[tokio::test]
async fn each_rejection_of_a_server_is_one_clear_error() {
    let server = start();
    let address = server.address();
    for statement in [
        "CREATE ROLE ada LOGIN PASSWORD 'right'",
        "CREATE ROLE eve LOGIN",
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'",
        "CREATE DATABASE newer",
    ] {
        server.execute(statement).unwrap();
    }
    let newer = format!("postgres://postgres@{address}/newer");
    drop(connect(&newer).await);
    let file = server.execute("SHOW hba_file").unwrap();
    server
        .execute(&format!(
            "COPY (VALUES ('host all ada 127.0.0.1/32 scram-sha-256'), ('host all all 127.0.0.1/32 trust')) TO '{file}'"
        ))
        .unwrap();
    server.execute("SELECT pg_reload_conf()").unwrap();

    let (wrong, text) = error(&format!("postgres://ada:s3cret@{address}/postgres")).await;
    assert!(
        matches!(wrong, PostgresError::Unauthorized { .. }),
        "{text}"
    );
    let (missing, text) = error(&format!("postgres://ada@{address}/postgres")).await;
    assert!(
        matches!(missing, PostgresError::Unauthorized { .. }),
        "{text}"
    );
    let (unknown, text) = error(&format!("postgres://postgres@{address}/nowhere")).await;
    assert!(
        matches!(unknown, PostgresError::UnknownDatabase { .. }),
        "{text}"
    );
    let (forbidden, text) = error(&format!("postgres://eve@{address}/postgres")).await;
    assert!(
        matches!(forbidden, PostgresError::MissingPermission { .. }),
        "{text}"
    );
    let (latin, text) = error(&format!("postgres://postgres@{address}/latin")).await;
    assert!(
        matches!(latin, PostgresError::WrongEncoding { .. }),
        "{text}"
    );

    let options = PostgresOptions::from_url(&newer).unwrap();
    let version = "INSERT INTO turnbuckle.migration (version) VALUES (99)";
    let client = PostgresMemoryStore::connect(options).await.unwrap();
    let insert = client.session.write(TransactionKind::Write, move |tx| {
        Box::pin(async move { Ok(tx.batch_execute(version).await?) })
    });
    insert.await.unwrap();
    let (newer, text) = error(&newer).await;
    assert!(
        matches!(newer, PostgresError::NewerVersion { found: 99, .. }),
        "{text}"
    );
    assert!(text.contains("update this program"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_start_together_create_the_tables_once() {
    let server = start();
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let options = PostgresOptions::from_url(&server.url()).unwrap();
            tokio::spawn(PostgresMemoryStore::connect(options))
        })
        .collect();
    for start in starts {
        start.await.unwrap().unwrap();
    }
    let applied = server.execute("SELECT count(*) FROM turnbuckle.migration");
    assert_eq!(applied.unwrap(), "1");
}

#[tokio::test]
async fn existing_tables_need_no_right_to_create_any() {
    let server = start();
    drop(connect(&server.url()).await);
    for statement in [
        "CREATE ROLE app LOGIN",
        "GRANT USAGE ON SCHEMA turnbuckle TO app",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA turnbuckle TO app",
    ] {
        server.execute(statement).unwrap();
    }
    let store = connect(&server.url().replace("postgres@", "app@")).await;
    let shared = Partition::shared(&ada());
    store.save(&shared, checkpoint("done")).await.unwrap();
    assert_eq!(bodies(&store, &shared).await, ["done"]);
}
