/* Tables of the database, as numbered migrations. Any process that opens it.
 *
 * The path of a run writes `starts` and `ends` alone, which have no index but their number. The
 * catalog and the words follow in the background (store/records). */
#include "store/db/schema.h"

#include "base/attr.h"

static const char records[] =
    /* Small values: "redact_key" and "page_key", which seals the places of pages. */
    "CREATE TABLE meta (name TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;"
    "INSERT INTO meta VALUES ('page_key', lower(hex(randomblob(32))));"

    /* Processes that write records. `name` is a file in STATE/engines, locked while it lives. */
    "CREATE TABLE engines (engine INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " version TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER);"

    /* `code` and `request` are redacted. The request is JSON as it was sent, without its code; a
     * file is {"path","size_bytes","sha256","readonly"}, stdin {"size_bytes","sha256"}. */
    "CREATE TABLE starts (n INTEGER PRIMARY KEY, run TEXT NOT NULL, engine INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, owner TEXT NOT NULL, door TEXT NOT NULL, task TEXT, step INTEGER,"
    " replay_of TEXT, session TEXT, language TEXT NOT NULL, code_sha256 TEXT NOT NULL,"
    " redacted INTEGER NOT NULL, bytes INTEGER NOT NULL, code TEXT NOT NULL,"
    " request TEXT NOT NULL);"

    /* The result is JSON, redacted. A long one is a content (`result_sha256`), and `brief` has its
     * beginnings: {"stdout","stderr","text","error"}. `error` is that of a run that was refused
     * after its start. */
    "CREATE TABLE ends (n INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, status TEXT NOT NULL,"
    " exit_code INTEGER, wall_ms REAL, cpu_ms REAL, memory_peak_bytes INTEGER, cell INTEGER,"
    " artifacts INTEGER NOT NULL, redacted INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " result TEXT, result_sha256 TEXT, brief TEXT, error TEXT);"

    /* Bytes by their sum: in the row, or in STATE/contents/ab/cdef... where `bytes` is NULL. */
    "CREATE TABLE contents (c INTEGER PRIMARY KEY, sha256 TEXT NOT NULL UNIQUE,"
    " size_bytes INTEGER NOT NULL, bytes BLOB);"

    /* Contents of a run: kind is input, stdin, artifact, stdout, stderr or result; `path` is a
     * BLOB, empty for those without one. n < 0: a file of act -n. */
    "CREATE TABLE uses (n INTEGER NOT NULL, kind TEXT NOT NULL, path BLOB NOT NULL,"
    " sha256 TEXT NOT NULL, size_bytes INTEGER NOT NULL, mime TEXT, readonly INTEGER,"
    " PRIMARY KEY (n, kind, path)) WITHOUT ROWID;"
    "CREATE INDEX uses_sha256 ON uses (sha256);"
    /* Contents that lost a use, and may have none left. */
    "CREATE TABLE loose (sha256 TEXT PRIMARY KEY) WITHOUT ROWID;"

    /* Acts on a session that are no run. Each came after run `after_n`. Of a fork, `from_session`
     * is the other session, whose cells it needs. */
    "CREATE TABLE acts (a INTEGER PRIMARY KEY, engine INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
    " after_n INTEGER NOT NULL, session TEXT NOT NULL, owner TEXT NOT NULL, kind TEXT NOT NULL,"
    " detail TEXT, redacted INTEGER NOT NULL, from_session TEXT);"
    "CREATE INDEX acts_from ON acts (from_session) WHERE from_session IS NOT NULL;"
    "CREATE INDEX acts_session ON acts (session, a);"

    /* Results that may be reused. */
    "CREATE TABLE cache (key TEXT NOT NULL, owner TEXT NOT NULL, n INTEGER NOT NULL,"
    " until_ms INTEGER NOT NULL, PRIMARY KEY (key, owner)) WITHOUT ROWID;"
    "CREATE INDEX cache_n ON cache (n);"

    /* Everything that lists and filters need. `status` is 'started' until the end is here. The
     * clock may jump back: `skew_ms` is how far a run's start is before that of an older run. */
    "CREATE TABLE catalog (n INTEGER PRIMARY KEY, run TEXT NOT NULL,"
    " engine INTEGER NOT NULL, owner TEXT NOT NULL, door TEXT NOT NULL, status TEXT NOT NULL,"
    " language TEXT NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER, wall_ms REAL,"
    " cpu_ms REAL, memory_peak_bytes INTEGER, exit_code INTEGER, session TEXT, cell INTEGER,"
    " task TEXT, step INTEGER, replay_of TEXT, code_sha256 TEXT NOT NULL, code TEXT NOT NULL,"
    " text TEXT, error_kind TEXT, error_name TEXT, artifacts INTEGER NOT NULL DEFAULT 0,"
    " redacted INTEGER NOT NULL, skew_ms INTEGER NOT NULL DEFAULT 0,"
    " bytes INTEGER NOT NULL, pinned INTEGER NOT NULL DEFAULT 0,"
    " cached_hits INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX catalog_run ON catalog (run);"
    "CREATE INDEX catalog_started ON catalog (started_ms);"
    "CREATE INDEX catalog_owner ON catalog (owner);"
    "CREATE INDEX catalog_status ON catalog (status);"
    "CREATE INDEX catalog_language ON catalog (language);"
    "CREATE INDEX catalog_session ON catalog (session) WHERE session IS NOT NULL;"
    "CREATE INDEX catalog_task ON catalog (task) WHERE task IS NOT NULL;"
    "CREATE INDEX catalog_replay ON catalog (replay_of) WHERE replay_of IS NOT NULL;"
    "CREATE INDEX catalog_pinned ON catalog (n) WHERE pinned;"
    "CREATE INDEX catalog_code ON catalog (code_sha256);"
    "CREATE INDEX catalog_skew ON catalog (skew_ms) WHERE skew_ms > 0;"

    /* The words of a run that ended. The texts are where they are: in starts and ends. `tags` are
     * the filters as words, so that words and filters are one search. */
    "CREATE VIEW texts AS SELECT s.n AS n, substr(s.code, 1, 65536) AS code,"
    " substr(json_extract(coalesce(e.brief, e.result), '$.stdout'), 1, 4096) AS stdout,"
    " substr(json_extract(coalesce(e.brief, e.result), '$.stderr'), 1, 4096) AS stderr,"
    " substr(json_extract(coalesce(e.brief, e.result), '$.text'), 1, 4096) AS text,"
    " substr(coalesce(e.error, json_extract(coalesce(e.brief, e.result), '$.error')), 1, 4096)"
    " AS error, 'o' || replace(s.owner, '_', '') || ' u' || replace(e.status, '_', '') || ' l' ||"
    " s.language || coalesce(' e' || replace(s.session, '_', ''), '') ||"
    " coalesce(' t' || replace(s.task, '_', ''), '') || ' c' || s.code_sha256 AS tags"
    " FROM starts s JOIN ends e ON e.n = s.n;"
    "CREATE VIRTUAL TABLE words USING fts5 (code, stdout, stderr, text, error, tags,"
    " content='texts', content_rowid='n', columnsize=0);";

static const char tasks[] =
    /* Tasks of the agent (store/tasks). Byte n of STATE/tasks.lock is locked while a process writes
     * task n. `unpriced` counts replies whose price is not known. */
    "CREATE TABLE tasks (n INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,"
    " owner TEXT NOT NULL, door TEXT NOT NULL, status TEXT NOT NULL,"
    " question TEXT NOT NULL DEFAULT '', questions INTEGER NOT NULL DEFAULT 0,"
    " model TEXT NOT NULL DEFAULT '', created_ms INTEGER NOT NULL, began_ms INTEGER NOT NULL,"
    " ended_ms INTEGER, steps INTEGER NOT NULL DEFAULT 0, usd REAL NOT NULL DEFAULT 0,"
    " unpriced INTEGER NOT NULL DEFAULT 0, input_tokens INTEGER NOT NULL DEFAULT 0,"
    " output_tokens INTEGER NOT NULL DEFAULT 0, requests INTEGER NOT NULL DEFAULT 0,"
    " redacted INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX tasks_created ON tasks (created_ms, n);"
    "CREATE INDEX tasks_owner ON tasks (owner, created_ms, n);"

    /* `data` is JSON, redacted. */
    "CREATE TABLE task_events (e INTEGER PRIMARY KEY, task INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " at_ms INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL);"
    "CREATE UNIQUE INDEX task_events_seq ON task_events (task, seq);"

    /* Files that came with a request, and files that were made: role is input or made. */
    "CREATE TABLE task_files (f INTEGER PRIMARY KEY, task INTEGER NOT NULL, role TEXT NOT NULL,"
    " path TEXT NOT NULL, mime TEXT NOT NULL, sha256 TEXT NOT NULL, size_bytes INTEGER NOT NULL,"
    " bytes BLOB NOT NULL);"
    "CREATE UNIQUE INDEX task_files_path ON task_files (task, role, path);";

static const char task_bytes[] =
    /* Bytes of a task's events: retention adds them up. Events are only ever added. */
    "ALTER TABLE tasks ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;"
    "UPDATE tasks SET bytes = (SELECT coalesce(sum(length(CAST(data AS BLOB))), 0)"
    " FROM task_events WHERE task = tasks.n);"
    "CREATE TRIGGER task_grows AFTER INSERT ON task_events BEGIN"
    " UPDATE tasks SET bytes = bytes + length(CAST(NEW.data AS BLOB)) WHERE n = NEW.task; END;";

const char *const schema_migrations[] = { records, tasks, task_bytes };
const int schema_newest = (int)array_len(schema_migrations);
