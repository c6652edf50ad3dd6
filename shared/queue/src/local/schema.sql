-- Format 1. `held` counts a queue's messages, so that a send need not.
CREATE TABLE queues (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    held INTEGER NOT NULL DEFAULT 0
) STRICT;

-- AUTOINCREMENT: a number is never used twice, so an old receipt never fits a new message.
-- hidden_until is NULL for a message that is given back or was never out of sight. With receive_count = 0 it is a delay.
CREATE TABLE messages (
    sequence      INTEGER PRIMARY KEY AUTOINCREMENT,
    queue         INTEGER NOT NULL REFERENCES queues (id),
    lane          TEXT NOT NULL,
    group_id      TEXT,
    body          TEXT NOT NULL,
    attributes    TEXT NOT NULL,
    sent_at       INTEGER NOT NULL,
    receive_count INTEGER NOT NULL DEFAULT 0,
    hidden_until  INTEGER
) STRICT;
CREATE INDEX messages_by_lane ON messages (queue, lane, sequence);
CREATE INDEX messages_hidden ON messages (queue, lane, hidden_until) WHERE hidden_until IS NOT NULL;
CREATE INDEX messages_in_flight ON messages (queue, hidden_until) WHERE hidden_until IS NOT NULL AND receive_count > 0;

CREATE TRIGGER message_in AFTER INSERT ON messages BEGIN
    UPDATE queues SET held = held + 1 WHERE id = new.queue;
END;
CREATE TRIGGER message_out AFTER DELETE ON messages BEGIN
    UPDATE queues SET held = held - 1 WHERE id = old.queue;
END;
CREATE TRIGGER message_moved AFTER UPDATE OF queue ON messages BEGIN
    UPDATE queues SET held = held - 1 WHERE id = old.queue;
    UPDATE queues SET held = held + 1 WHERE id = new.queue;
END;

-- A lane is what is received in order and blocked as a whole: a group of a FIFO queue, a single message of a standard
-- queue. Receiving looks at lanes alone, so its cost does not depend on how many messages wait behind a blocked one.
CREATE TABLE lanes (
    queue         INTEGER NOT NULL,
    lane          TEXT NOT NULL,
    head          INTEGER NOT NULL,
    blocked_until INTEGER,
    PRIMARY KEY (queue, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX lanes_ready ON lanes (queue, head) WHERE blocked_until IS NULL;
CREATE INDEX lanes_blocked ON lanes (queue, blocked_until) WHERE blocked_until IS NOT NULL;

CREATE TABLE deduplication (
    queue      INTEGER NOT NULL,
    lane       TEXT NOT NULL,
    id         TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (queue, lane, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX deduplication_by_expiry ON deduplication (expires_at);
