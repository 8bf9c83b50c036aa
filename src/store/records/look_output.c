/* Bytes of records: outputs, artifacts, inputs. Any process with a connection. */
#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "store/records/catalog.h"
#include "store/records/contents.h"
#include "store/records/look_int.h"

int look_use(struct db *db, int64_t n, const char *kind, struct str path, char out[HASH_HEX_ROOM],
             struct err *err)
{
    struct db_query *query = db_ask(
        db, "SELECT sha256 FROM uses WHERE n = ?1 AND kind = ?2 AND path = ?3", err);
    if (!query)
        return -1;
    db_put_int(query, 1, n);
    db_put_text(query, 2, str_of(kind));
    db_put_bytes(query, 3, path);
    int got = db_next(query, err);
    if (got <= 0)
        return got;
    struct str sum = db_text(query, 0);
    if (sum.len < HASH_HEX_ROOM) {
        memcpy(out, sum.at, sum.len);
        out[sum.len] = '\0';
    }
    db_stop(query);
    return 1;
}

int look_content(struct db *db, int state_dir, const char *sha256, struct buf *out, struct err *err)
{
    return contents_read(db, state_dir, sha256, out, err);
}

static int full(struct buf *out, struct err *err)
{
    return err_set(err, ERR_LIMIT, "it has more than %zu bytes", out->max);
}

/* The text in the result: its head and tail, or its exact bytes where it is no UTF-8. */
static int add_text(struct db *db, int64_t n, bool is_err, struct buf *out, struct err *err)
{
    own_json record = look_record(db, n, err);
    const json_t *result = json_object_get(record, "result");
    const json_t *text = json_object_get(result, is_err ? "stderr" : "stdout");
    const json_t *coded = json_object_get(result, is_err ? "stderr_base64" : "stdout_base64");
    size_t len = 0;
    if (!record)
        return -1;
    if (!json_is_string(text))
        return err_set(err, ERR_ABSENT, "run '%s' has no output: it did not end",
                       json_string_value(json_object_get(record, "run")));
    own_str bytes = coded ? base64_decode(json_str(coded), &len) : NULL;
    struct str all = bytes ? (struct str){ bytes, len } : json_str(text);
    return buf_add_str(out, all) < 0 ? full(out, err) : 0;
}

int look_output(struct db *db, int state_dir, const char *owner, const char *id, bool is_err,
                struct buf *out, struct err *err)
{
    char sum[HASH_HEX_ROOM] = "";
    if (records_catch_up(db, err) < 0)
        return -1;
    int64_t n = look_find(db, owner, id, err);
    int got = n < 0 ? -1 : look_use(db, n, is_err ? "stderr" : "stdout", STR(""), sum, err);
    if (got > 0)
        got = contents_read(db, state_dir, sum, out, err);
    else if (got == 0)
        got = add_text(db, n, is_err, out, err);
    db_bound_ms(db, 0);
    return got;
}

/* An artifact, an input, or the whole of an output, which the result lists as a file: that is
 * stored as an output, because it is redacted. */
static int find_file(struct db *db, int64_t n, struct str path, char out[HASH_HEX_ROOM],
                     struct err *err)
{
    int got = look_use(db, n, "artifact", path, out, err);
    if (got == 0)
        got = look_use(db, n, "input", path, out, err);
    if (got == 0 && str_is(path, ".cupel/stdout"))
        got = look_use(db, n, "stdout", STR(""), out, err);
    if (got == 0 && str_is(path, ".cupel/stderr"))
        got = look_use(db, n, "stderr", STR(""), out, err);
    return got;
}

int look_artifact(struct db *db, int state_dir, const char *owner, const char *id, struct str path,
                  struct buf *out, struct err *err)
{
    char sum[HASH_HEX_ROOM] = "";
    if (records_catch_up(db, err) < 0)
        return -1;
    int64_t n = look_find(db, owner, id, err);
    int got = n < 0 ? -1 : find_file(db, n, path, sum, err);
    if (got == 0) {
        err_set(err, ERR_ABSENT, "there is no artifact '%.*s'", (int)str_cut_utf8(path, 80),
                path.at);
        snprintf(err->field, sizeof err->field, "artifact");
        got = -1;
    } else if (got > 0) {
        got = contents_read(db, state_dir, sum, out, err);
    }
    db_bound_ms(db, 0);
    return got;
}
