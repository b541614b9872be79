-- The file of one project, or of what an owner shares between projects. Version 1.
-- Times are milliseconds since 1970. Ids that callers see are text; row numbers tie the tables together.

-- What this file is about: `root` (the folder of the project) and the like.
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
    words TEXT NOT NULL DEFAULT '',         -- the parts of identifiers, to be found by
    tags TEXT NOT NULL DEFAULT '[]',        -- a JSON array of strings
    meta TEXT NOT NULL DEFAULT '{}',        -- a JSON object
    confidence REAL NOT NULL DEFAULT 1.0,
    usage INTEGER NOT NULL DEFAULT 0,
    redacted INTEGER NOT NULL DEFAULT 0,    -- secrets that were taken out
    hash TEXT NOT NULL,                     -- of what was saved; the same thing is saved once
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
-- What was removed is not in the index either.
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

-- Branches that something was saved on, and those that were asked for by name.
CREATE TABLE collection (
    branch TEXT PRIMARY KEY,
    vector_size INTEGER NOT NULL,
    created INTEGER NOT NULL
) WITHOUT ROWID;

-- The numbers of the rows below are not used twice: one who comes late must not meet somebody else's.

-- Folders whose files are indexed. What is written for a run that is not finished belongs to no tree.
CREATE TABLE tree (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL UNIQUE,
    branch TEXT NOT NULL,
    settings TEXT NOT NULL,                 -- which files are wanted, JSON
    counts TEXT NOT NULL,                   -- files, chunks, and what was left out and why, JSON
    version INTEGER NOT NULL DEFAULT 0,     -- counts the runs that were finished
    refreshed INTEGER NOT NULL
);

-- A run that writes; removed in the transaction that shows its files. One that is silent for long is dead.
CREATE TABLE run (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    root TEXT NOT NULL,
    heartbeat INTEGER NOT NULL
);

-- Files as they are shown (`tree`), or as a run has read them and not shown yet (`run`).
CREATE TABLE file (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tree INTEGER REFERENCES tree (id),
    run INTEGER REFERENCES run (id),
    path TEXT NOT NULL,                     -- below the root, with `/`
    size INTEGER NOT NULL,
    modified INTEGER NOT NULL,              -- nanoseconds; 0 if it was too fresh to be trusted
    hash BLOB NOT NULL,
    language TEXT NOT NULL,
    left_out TEXT NOT NULL DEFAULT '',      -- why it has no chunks although it was looked at
    chunks INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL,
    CHECK ((tree IS NULL) <> (run IS NULL))
);
CREATE UNIQUE INDEX file_shown ON file (tree, path) WHERE tree IS NOT NULL;
CREATE INDEX file_of_run ON file (run) WHERE run IS NOT NULL;

CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL REFERENCES file (id) ON DELETE CASCADE,
    first_line INTEGER NOT NULL,            -- from 1
    last_line INTEGER NOT NULL,
    symbol TEXT NOT NULL DEFAULT '',        -- the definition it begins with
    kind TEXT NOT NULL DEFAULT '',          -- function, type, …
    defs TEXT NOT NULL DEFAULT '',          -- every name defined in it
    body TEXT NOT NULL
);
CREATE INDEX chunk_file ON chunk (file);
-- The words of what was deleted stay in this index until it is written anew, which is done when a collection is deleted:
-- without the content there is no secure delete.
CREATE VIRTUAL TABLE chunk_fts USING fts5 (
    body, idents, path, defs,
    content = '', contentless_delete = 1,
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER chunk_gone AFTER DELETE ON chunk BEGIN
    DELETE FROM chunk_fts WHERE rowid = old.id;
    DELETE FROM vector WHERE of = 'chunk' AND row = old.id;
END;

-- What was asked for and may be asked about later.
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

-- Embeddings, by the model that made them.
CREATE TABLE vector (
    of TEXT NOT NULL CHECK (of IN ('item', 'chunk')),
    row INTEGER NOT NULL,
    model TEXT NOT NULL,
    data BLOB NOT NULL,                     -- 32-bit floats, little endian, length 1
    PRIMARY KEY (of, row, model)
) WITHOUT ROWID;
