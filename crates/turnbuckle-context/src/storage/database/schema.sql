-- The database of one project, or of the data that an owner shares between projects. Version 1.
-- Times are milliseconds since 1970. Public ids are text; row ids connect the tables.

-- Properties of this database, such as `root` (the folder of the project).
CREATE TABLE about (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- Checkpoints, remediations and skills.
CREATE TABLE item (
    row INTEGER PRIMARY KEY,                -- each kind has its own range, in the order of saving
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL CHECK (kind IN ('checkpoint', 'remediation', 'skill')),
    branch TEXT NOT NULL,
    title TEXT NOT NULL,                    -- summary; error message; name
    body TEXT NOT NULL,                     -- content; solution; content
    detail TEXT NOT NULL DEFAULT '',        -- -; context; description
    words TEXT NOT NULL DEFAULT '',         -- parts of identifiers, for search
    tags TEXT NOT NULL DEFAULT '[]',        -- a JSON array of strings
    meta TEXT NOT NULL DEFAULT '{}',        -- a JSON object
    confidence REAL NOT NULL DEFAULT 1.0,
    usage INTEGER NOT NULL DEFAULT 0,
    redacted INTEGER NOT NULL DEFAULT 0,    -- number of redacted secrets
    hash TEXT NOT NULL,                     -- identifies duplicates
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (kind, hash)
);
CREATE INDEX item_newest ON item (kind, created DESC, row DESC);
CREATE INDEX item_branch ON item (branch);

CREATE VIRTUAL TABLE item_fts USING fts5 (
    title, body, detail, tags, words,
    content = 'item', content_rowid = 'row',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
-- Deleted rows are removed from the search index, too.
INSERT INTO item_fts (item_fts, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER item_added AFTER INSERT ON item BEGIN
    INSERT INTO item_fts (rowid, title, body, detail, tags, words)
    VALUES (new.row, new.title, new.body, new.detail, new.tags, new.words);
END;
CREATE TRIGGER item_gone AFTER DELETE ON item BEGIN
    INSERT INTO item_fts (item_fts, rowid, title, body, detail, tags, words)
    VALUES ('delete', old.row, old.title, old.body, old.detail, old.tags, old.words);
    DELETE FROM vector WHERE of = 'item' AND row = old.row;
END;
CREATE TRIGGER item_changed AFTER UPDATE OF title, body, detail, tags, words ON item BEGIN
    INSERT INTO item_fts (item_fts, rowid, title, body, detail, tags, words)
    VALUES ('delete', old.row, old.title, old.body, old.detail, old.tags, old.words);
    INSERT INTO item_fts (rowid, title, body, detail, tags, words)
    VALUES (new.row, new.title, new.body, new.detail, new.tags, new.words);
    DELETE FROM vector WHERE of = 'item' AND row = old.row;
END;

-- Branches with data, and branches that were created by name.
CREATE TABLE collection (
    branch TEXT PRIMARY KEY,
    vector_size INTEGER NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;

-- Row ids below are never reused: a late process must not find the rows of another one.

-- Indexed folders. Files of an unfinished run do not belong to a tree.
CREATE TABLE tree (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL UNIQUE,
    branch TEXT NOT NULL,
    settings TEXT NOT NULL,                 -- index options, JSON
    counts TEXT NOT NULL,                   -- files, chunks and skipped files by reason, JSON
    version INTEGER NOT NULL DEFAULT 0,     -- number of finished runs
    refreshed INTEGER NOT NULL
);

-- An index run; deleted in the transaction that publishes its files. A run without a heartbeat for a minute is dead.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL,
    heartbeat INTEGER NOT NULL
);

-- Published files (`tree`), and files of a run that are not published yet (`run`).
CREATE TABLE file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tree INTEGER REFERENCES tree (id),
    run INTEGER REFERENCES run (id),
    path TEXT NOT NULL,                     -- relative to the root, with `/`
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,              -- nanoseconds; 0 if modified too recently
    hash BLOB NOT NULL,
    language TEXT NOT NULL,
    left_out TEXT NOT NULL DEFAULT '',      -- reason why it was skipped, or empty
    chunks INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL,
    CHECK ((tree IS NULL) <> (run IS NULL))
);
CREATE UNIQUE INDEX file_shown ON file (tree, path) WHERE tree IS NOT NULL;
CREATE INDEX file_of_run ON file (run) WHERE run IS NOT NULL;

CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    first_line INTEGER NOT NULL,            -- counted from 1
    last_line INTEGER NOT NULL,
    symbol TEXT NOT NULL DEFAULT '',        -- the definition at its start
    kind TEXT NOT NULL DEFAULT '',          -- function, type, …
    defs TEXT NOT NULL DEFAULT '',          -- all defined names
    body TEXT NOT NULL
);
CREATE INDEX chunk_file ON chunk (file);
-- Words of deleted rows stay in this index until it is rewritten, which happens when a collection is deleted: a contentless
-- FTS5 table does not support secure deletion.
CREATE VIRTUAL TABLE chunk_fts USING fts5 (
    body, idents, path, defs,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER chunk_gone AFTER DELETE ON chunk BEGIN
    DELETE FROM chunk_fts WHERE rowid = old.id;
    DELETE FROM vector WHERE of = 'chunk' AND row = old.id;
END;

-- Operations, so that callers can query their status.
CREATE TABLE operation (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed')),
    result TEXT,                            -- JSON
    error TEXT,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX operation_oldest ON operation (updated);

-- Embeddings by model.
CREATE TABLE vector (
    of TEXT NOT NULL CHECK (of IN ('item', 'chunk')),
    row INTEGER NOT NULL,
    model TEXT NOT NULL,
    data BLOB NOT NULL,                     -- 32-bit floats, little endian, length 1
    PRIMARY KEY (of, row, model)
) WITHOUT ROWID;
