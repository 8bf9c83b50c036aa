/* Lists and searches records, the newest first. Any process with a connection.
 *
 * One filter is answered by an index of the catalog that ends in the run's number. Several filters,
 * and words, are answered by the text index: each run has a word for its owner, status, language,
 * session, task and code in the column `tags`, and FTS5 skips from one list of runs to the other.
 * The catalog's own columns are compared in any case. Runs that have not ended have no words: they
 * are few, and are merged in. */
#include "base/json.h"
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/look_int.h"

#define PAGE_BYTES_MAX (8u << 20)

#define COLUMNS                                                                                  \
    "SELECT c.n, c.run, c.status, c.language, c.owner, c.started_ms, c.wall_ms, c.cpu_ms,"       \
    " c.memory_peak_bytes, c.exit_code, c.session, c.cell, c.task, c.step, c.code_sha256,"       \
    " c.code, c.text, c.redacted, c.pinned, c.cached_hits, c.artifacts, c.bytes FROM "
#define TESTS                                                                                    \
    " AND c.n > ?1 AND c.n < ?2 AND c.started_ms >= ?3 AND c.started_ms < ?4"                    \
    " AND (?5 IS NULL OR c.owner = ?5) AND (?6 IS NULL OR c.status = ?6)"                        \
    " AND (?7 IS NULL OR c.language = ?7) AND (?8 IS NULL OR c.session = ?8)"                    \
    " AND (?9 IS NULL OR c.task = ?9) AND (?10 IS NULL OR c.code_sha256 = ?10)"                  \
    " ORDER BY c.n DESC LIMIT ?11"
#define BY(index, column, place)                                                                 \
    COLUMNS "catalog c INDEXED BY catalog_" #index " WHERE c." #column " = ?" #place TESTS

static const char all_runs[] = COLUMNS "catalog c NOT INDEXED WHERE 1" TESTS;
static const char open_runs[] = COLUMNS
    "catalog c INDEXED BY catalog_status WHERE c.status = 'started'" TESTS;
static const char by_words[] = COLUMNS
    "words w CROSS JOIN catalog c ON c.n = w.rowid WHERE words MATCH ?12"
    " AND w.rowid > ?1 AND w.rowid < ?2 AND c.started_ms >= ?3 AND c.started_ms < ?4"
    " AND (?5 IS NULL OR c.owner = ?5) AND (?6 IS NULL OR c.status = ?6)"
    " AND (?7 IS NULL OR c.language = ?7) AND (?8 IS NULL OR c.session = ?8)"
    " AND (?9 IS NULL OR c.task = ?9) AND (?10 IS NULL OR c.code_sha256 = ?10)"
    " ORDER BY w.rowid DESC LIMIT ?11";

/* A column that a list can be filtered by: its word in `tags`, and the question by its index. */
struct column {
    char tag;
    size_t at; /* in struct look_filter */
    const char *sql;
};
#define COLUMN(tag, index, column, place) \
    { tag, offsetof(struct look_filter, column), BY(index, column, place) }
static const struct column columns[] = {
    COLUMN('o', owner, owner, 5),       COLUMN('u', status, status, 6),
    COLUMN('l', language, language, 7), COLUMN('e', session, session, 8),
    COLUMN('t', task, task, 9),         COLUMN('c', code, code_sha256, 10),
};
#define FIRST_PLACE 5 /* of the columns above, in a question */

static const char *value_of(const struct look_filter *filter, const struct column *column)
{
    return *(const char *const *)((const char *)filter + column->at);
}

/* --- rows --- */

/* In the order of COLUMNS, after `n`. */
static const struct look_member members[] = {
    { "run", look_text },       { "status", look_text },
    { "language", look_text },  { "owner", look_text },
    { "started_at", look_seconds },     { "wall_ms", look_real },
    { "cpu_ms", look_real },    { "memory_peak_bytes", look_int },
    { "exit_code", look_int },  { "session", look_text },
    { "cell", look_int },       { "task", look_text },
    { "step", look_int },       { "code_sha256", look_text },
    { "code", look_text },      { "text", look_text },
    { "redacted", look_int },   { "pinned", look_flag },
    { "cached_hits", look_int }, { "artifacts", look_int },
    { "stored_bytes", look_int },
};

/* --- questions --- */

struct question {
    const struct look_filter *filter;
    struct look_bounds bounds;
    int limit; /* rows; one more is asked for, which says that there is a next page */
    struct buf match; /* of FTS5 */
};

/* Rows and their numbers; both in the same order. */
struct rows {
    json_t *rows;
    int64_t n[LOOK_PAGE_MAX + 1];
    size_t count, bytes;
};

static int ask(struct db *db, const struct question *question, const char *sql, struct rows *out,
               struct err *err)
{
    const struct look_filter *filter = question->filter;
    struct db_query *query = db_ask(db, sql, err);
    int got;
    if (!query)
        return -1;
    db_put_int(query, 1, question->bounds.low);
    db_put_int(query, 2, question->bounds.high);
    db_put_int(query, 3, filter->since_ms ? filter->since_ms : INT64_MIN);
    db_put_int(query, 4, filter->until_ms ? filter->until_ms : INT64_MAX);
    for (size_t i = 0; i < array_len(columns); i++)
        look_put_text_or_null(query, FIRST_PLACE + (int)i, value_of(filter, &columns[i]));
    db_put_int(query, 11, question->limit + 1);
    if (sql == by_words)
        db_put_text(query, 12, buf_str(&question->match));
    while ((got = db_next(query, err)) > 0 && out->count <= (size_t)question->limit) {
        out->n[out->count++] = db_int(query, 0);
        json_array_append_new(out->rows, look_row(query, members, array_len(members), 1));
    }
    if (got > 0)
        db_stop(query);
    return got < 0 ? look_slow(err) : 0;
}

/* The newest of two lists. */
static void merge(struct rows *into, const struct rows *other, size_t max)
{
    own_json all = json_array();
    int64_t n[LOOK_PAGE_MAX + 1];
    size_t a = 0, b = 0, count = 0;
    while (count < max && (a < into->count || b < other->count)) {
        bool first = b == other->count || (a < into->count && into->n[a] > other->n[b]);
        n[count++] = first ? into->n[a] : other->n[b];
        json_array_append(all, first ? json_array_get(into->rows, a++)
                                     : json_array_get(other->rows, b++));
    }
    memcpy(into->n, n, count * sizeof *n);
    into->count = count;
    json_array_clear(into->rows);
    json_array_extend(into->rows, all);
}

/* The expression of words and tags; false: some value is none that a run can have. */
static bool make_match(struct question *question, bool has_text)
{
    const char *before = has_text ? " AND tags : (" : "tags : (";
    bool any = false;
    for (size_t i = 0; i < array_len(columns); i++) {
        const char *value = value_of(question->filter, &columns[i]);
        if (!value)
            continue;
        buf_add_text(&question->match, any ? " AND " : before);
        if (!look_tag(&question->match, columns[i].tag, value))
            return false;
        any = true;
    }
    if (any)
        buf_add_text(&question->match, ")");
    return true;
}

static int ask_by_index(struct db *db, struct question *question, struct rows *out, struct err *err)
{
    const char *sql = all_runs;
    for (size_t i = 0; i < array_len(columns); i++)
        if (value_of(question->filter, &columns[i]))
            sql = columns[i].sql;
    return ask(db, question, sql, out, err);
}

static int ask_by_tags(struct db *db, struct question *question, struct rows *out, struct err *err)
{
    const char *status = question->filter->status;
    struct rows *open = NULL;
    int done = -1;
    if (status && strcmp(status, "started") == 0)
        return ask(db, question, open_runs, out, err);
    if (!make_match(question, /* has_text= */ false))
        return 0;
    if (ask(db, question, by_words, out, err) < 0)
        return -1;
    if (status)
        return 0;
    open = buf_alloc_zero(1, sizeof *open);
    open->rows = json_array();
    if (ask(db, question, open_runs, open, err) == 0) {
        merge(out, open, (size_t)question->limit + 1);
        done = 0;
    }
    json_decref(open->rows);
    free(open);
    return done;
}

static int ask_by_text(struct db *db, struct question *question, struct rows *out, struct err *err)
{
    buf_add_text(&question->match, "{code stdout stderr text error} : (");
    if (look_words(str_of(question->filter->text), &question->match, err) < 0)
        return -1;
    buf_add_text(&question->match, ")");
    if (!make_match(question, /* has_text= */ true))
        return 0;
    db_bound_ms(db, LOOK_SEARCH_MS);
    return ask(db, question, by_words, out, err);
}

static int ask_best(struct db *db, struct question *question, struct rows *out, struct err *err)
{
    size_t filters = 0;
    for (size_t i = 0; i < array_len(columns); i++)
        filters += value_of(question->filter, &columns[i]) != NULL;
    if (question->filter->text)
        return ask_by_text(db, question, out, err);
    return filters > 1 ? ask_by_tags(db, question, out, err) : ask_by_index(db, question, out, err);
}

/* --- pages --- */

static int read_key(struct db *db, struct buf *out, struct err *err)
{
    struct db_query *query = db_ask(db, "SELECT value FROM meta WHERE name = 'page_key'", err);
    int got = query ? db_next(query, err) : -1;
    if (got > 0) {
        buf_add_str(out, db_bytes(query, 0));
        db_stop(query);
    }
    return got < 0 ? -1 : got > 0 ? 0 : err_set(err, ERR_BUG, "the store has no key for pages");
}

static int prepare(struct db *db, struct question *question, struct str key, const char *sum,
                   struct err *err)
{
    const struct look_filter *filter = question->filter;
    int64_t last = 0;
    question->limit = filter->limit ? filter->limit : LOOK_PAGE;
    if (question->limit < 1 || question->limit > LOOK_PAGE_MAX)
        return err_input(err, "limit", NULL, "1 to 1000", "a page of %d runs is not possible",
                         question->limit);
    if (filter->page && look_page_read(key, filter->page, sum, &last, err) < 0)
        return -1;
    if (look_bounds(db, filter, &question->bounds, err) < 0)
        return look_slow(err);
    if (filter->page && last < question->bounds.high)
        question->bounds.high = last;
    return 0;
}

/* A row is a few hundred bytes; this holds whatever the texts in it are. */
static void cut(struct rows *rows, size_t limit)
{
    size_t bytes = 0, count = 0;
    while (count < rows->count && count < limit) {
        const json_t *row = json_array_get(rows->rows, count);
        bytes += 1024 + json_get_str(row, "code").len + json_get_str(row, "text").len;
        if (count > 0 && bytes > PAGE_BYTES_MAX)
            break;
        count++;
    }
    for (size_t at = rows->count; at > count; at--)
        json_array_remove(rows->rows, at - 1);
}

static json_t *list(struct db *db, const struct look_filter *filter, struct rows *rows,
                    struct err *err)
{
    char sum[HASH_HEX_ROOM], next[LOOK_PAGE_ROOM];
    struct question question = { .filter = filter, .match = BUF_INIT(LOOK_MATCH_ROOM) };
    own_buf key = BUF_INIT(256);
    look_filter_sum(filter, sum);
    db_bound_ms(db, LOOK_LIST_MS);
    int done = read_key(db, &key, err) < 0 || prepare(db, &question, buf_str(&key), sum, err) < 0 ||
                       ask_best(db, &question, rows, err) < 0
                   ? -1
                   : 0;
    buf_done(&question.match);
    if (done < 0)
        return NULL;
    cut(rows, (size_t)question.limit);
    size_t count = json_array_size(rows->rows);
    bool more = count < rows->count;
    if (more)
        look_page_write(buf_str(&key), rows->n[count - 1], sum, next);
    return json_pack("{s:O, s:s?}", "runs", rows->rows, "next", more ? next : NULL);
}

json_t *look_list(struct db *db, const struct look_filter *filter, struct err *err)
{
    if (records_catch_up(db, err) < 0)
        return NULL;
    struct rows *rows = buf_alloc_zero(1, sizeof *rows);
    rows->rows = json_array();
    json_t *page = list(db, filter, rows, err);
    db_bound_ms(db, 0);
    json_decref(rows->rows);
    free(rows);
    return page;
}
