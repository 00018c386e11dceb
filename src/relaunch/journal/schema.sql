-- The index of one journal. Everything here is read from the trial directories and can be thrown
-- away at any time. Change a column, raise user_version: an index of another version is rebuilt.
PRAGMA user_version = 1;

CREATE TABLE trial (
    id         TEXT PRIMARY KEY,   -- 3, 3.2
    stamp      INTEGER NOT NULL,   -- the directory's mtime in ns when it was read; 0: read it again
    when_s     REAL NOT NULL,      -- start, seconds since the epoch
    config_set TEXT NOT NULL,
    state      TEXT NOT NULL,      -- passed, failed, interrupted, unstarted, killed, running, unknown; '': unreadable
    verdict    TEXT NOT NULL,      -- good, bad, unsure, as marked
    digest     TEXT NOT NULL,      -- of the failure's signature
    title      TEXT NOT NULL,      -- of the failure, lower case
    command    TEXT NOT NULL,      -- lower case, words joined by blanks
    words      TEXT NOT NULL       -- note, mark, name, set, command, failure; lower case
) WITHOUT ROWID;

CREATE INDEX trial_when ON trial (when_s);
