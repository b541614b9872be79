-- Memory of all owners. Times are milliseconds since 1970.
--
-- Texts cannot contain U+0000 in PostgreSQL; they are stored with U+E000 as escape character.

-- A project of an owner, or the data that all projects of an owner share.
CREATE TABLE turnbuckle.partition (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner text NOT NULL,
    project text NOT NULL,                  -- empty for shared data
    root text,                              -- the folder of the project
    version bigint NOT NULL DEFAULT 0,      -- the number of changes
    bytes bigint NOT NULL DEFAULT 0,        -- the size of items and embeddings
    UNIQUE (owner, project)
);

-- Checkpoints (kind 0), remediations (1) and skills (2). Writers lock the partition, so that numbers follow the order of commits.
CREATE TABLE turnbuckle.item (
    partition bigint NOT NULL REFERENCES turnbuckle.partition (id) ON DELETE CASCADE,
    number bigint NOT NULL,                 -- each kind has its own range, in the order of saving
    id text NOT NULL,
    kind smallint NOT NULL CHECK (kind BETWEEN 0 AND 2),
    branch text NOT NULL,
    title text NOT NULL,                    -- summary; error message; name
    body text NOT NULL,                     -- content; solution; content
    detail text NOT NULL,                   -- -; context; description
    tags text NOT NULL,                     -- a JSON array of strings
    meta text NOT NULL,                     -- a JSON object
    confidence double precision NOT NULL,
    usage bigint NOT NULL,
    redacted bigint NOT NULL,
    hash text NOT NULL,                     -- identifies duplicates
    bytes bigint NOT NULL,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    PRIMARY KEY (partition, number),
    UNIQUE (partition, id),
    UNIQUE (partition, kind, hash)
);
CREATE INDEX item_newest ON turnbuckle.item (partition, kind, created DESC, number DESC);
CREATE INDEX item_branch ON turnbuckle.item (partition, branch);

-- The words of items. The program makes them, with the rules of FTS5. One of the words names partition and kind, so that one index
-- finds the items with a term, without an extension such as btree_gin.
CREATE TABLE turnbuckle.item_words (
    partition bigint NOT NULL,
    number bigint NOT NULL,
    words tsvector NOT NULL,
    phrases text NOT NULL,                  -- all words in their order, a line for each member
    PRIMARY KEY (partition, number),
    FOREIGN KEY (partition, number) REFERENCES turnbuckle.item (partition, number) ON DELETE CASCADE
);
-- Short rows: a search for a frequent word reads many of them, and only needs their numbers.
ALTER TABLE turnbuckle.item_words SET (toast_tuple_target = 128);
-- Without a list of pending entries, which each search would have to read.
CREATE INDEX item_words_words ON turnbuckle.item_words USING gin (words) WITH (fastupdate = off);

-- Embeddings by model.
CREATE TABLE turnbuckle.embedding (
    partition bigint NOT NULL,
    number bigint NOT NULL,
    model text NOT NULL,
    data bytea NOT NULL,                    -- 32-bit floats, little endian, length 1
    PRIMARY KEY (partition, number, model),
    FOREIGN KEY (partition, number) REFERENCES turnbuckle.item (partition, number) ON DELETE CASCADE
);

-- Collections that were created by name.
CREATE TABLE turnbuckle.collection (
    partition bigint NOT NULL REFERENCES turnbuckle.partition (id) ON DELETE CASCADE,
    label text NOT NULL,                    -- the branch, with `_` for `/`
    vector_size bigint NOT NULL,
    PRIMARY KEY (partition, label)
);

-- Operations, so that callers can query their status.
CREATE TABLE turnbuckle.operation (
    partition bigint NOT NULL REFERENCES turnbuckle.partition (id) ON DELETE CASCADE,
    id text NOT NULL,
    kind text NOT NULL,
    status text NOT NULL CHECK (status IN ('pending', 'running', 'completed', 'failed')),
    result text,                            -- JSON
    error text,
    created bigint NOT NULL,
    updated bigint NOT NULL,
    PRIMARY KEY (partition, id)
);
CREATE INDEX operation_oldest ON turnbuckle.operation (partition, updated DESC, id);
