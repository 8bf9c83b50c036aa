/* Rows are made ready outside any transaction: texts redacted, bytes summed, files of large
 * contents written. The thread of records, or the one of large jobs. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "store/records/contents.h"
#include "store/records/records_int.h"

#define BRIEF 4096 /* bytes of each text that a long result keeps in its row */
#define SPILLED ".cupel/" /* output that was too long for the result, among its artifacts */

static struct records_use *add_use(struct records_row *row, const char *kind, struct str path,
                                   struct str bytes)
{
    struct records_uses *uses = &row->uses;
    uses->at = buf_list_room(uses->at, uses->count, sizeof *uses->at);
    struct records_use *use = &uses->at[uses->count++];
    use->kind = kind;
    use->path = buf_strdup(path);
    use->path_len = path.len;
    use->bytes = bytes;
    hash_hex(bytes, use->sha256);
    row->bytes += (int64_t)bytes.len;
    return use;
}

/* A name is text: it has the same markers as in the request and in the result. */
static size_t redact_path(const struct redact *redact, struct records_use *use)
{
    struct str path = { use->path, use->path_len };
    own_buf text = BUF_INIT(RECORDS_TEXT_MAX);
    size_t found = redact_may(redact, path) ? redact_text(redact, path, &text) : 0;
    if (!found)
        return 0;
    free(use->path);
    use->path_len = text.len;
    use->path = buf_take(&text);
    return found;
}

/* Text that is a content of its own: redacted like the rest of it. */
static struct records_use *add_text(const struct redact *redact, struct records_row *row,
                                    const char *kind, struct str bytes)
{
    struct buf text = BUF_INIT(RECORDS_TEXT_MAX);
    row->redacted += redact_text(redact, bytes, &text);
    size_t len = text.len;
    struct records_use *use = add_use(row, kind, STR(""), buf_str(&text));
    use->owned = buf_take(&text);
    use->bytes = (struct str){ use->owned, len };
    return use;
}

/* --- a start --- */

static json_t *describe_bytes(struct str bytes, const char *sha256)
{
    return json_pack("{s:I s:s}", "size_bytes", (json_int_t)bytes.len, "sha256", sha256);
}

static void prepare_inputs(const struct redact *redact, struct records_row *row,
                           const struct request *request, json_t *about)
{
    json_t *files = json_array();
    if (request->stdin_text.len > 0) {
        const struct records_use *use = add_text(redact, row, "stdin", request->stdin_text);
        json_object_set_new(about, "stdin", describe_bytes(use->bytes, use->sha256));
    } else {
        json_object_del(about, "stdin");
    }
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        struct records_use *use = add_use(row, "input", str_of(file->path), file->data);
        use->readonly = file->readonly;
        redact_path(redact, use);
        json_t *one = describe_bytes(use->bytes, use->sha256);
        json_object_set_new(one, "path", json_string(file->path));
        json_object_set_new(one, "readonly", json_boolean(file->readonly));
        json_array_append_new(files, one);
    }
    if (request->file_count > 0)
        json_object_set_new(about, "files", files);
    else
        json_decref(files);
}

/* The request as it was sent: its code is a column, its bytes are contents. */
static int prepare_start(const struct redact *redact, struct records_job *job, struct err *err)
{
    const struct request *request = job->request;
    struct records_row *row = &job->row;
    own_json about = request->root ? json_copy(request->root) : json_object();
    own_buf text = BUF_INIT(RECORDS_TEXT_MAX);
    json_object_del(about, "code");
    json_object_del(about, "files");
    prepare_inputs(redact, row, request, about);
    row->code = row->json = BUF_INIT(RECORDS_TEXT_MAX);
    if (json_add(&text, about) < 0)
        return err_set(err, ERR_LIMIT, "the request is too long for its record");
    hash_hex(request->code, row->code_sha256);
    row->redacted += redact_text(redact, request->code, &row->code) +
                     redact_json_text(redact, buf_str(&text), &row->json);
    if (row->redacted > 0)
        redact_sum(redact, row->code_sha256);
    row->bytes += (int64_t)(row->code.len + row->json.len);
    return 0;
}

/* --- an end --- */

static void add_brief(json_t *brief, const json_t *result, const char *name)
{
    struct str text = json_get_str(result, name);
    json_object_set_new(brief, name, json_stringn(text.at, str_cut_utf8(text, BRIEF)));
}

/* A long result is a content; its beginnings stay in the row. */
static int shorten(struct records_row *row, struct err *err)
{
    own_json result = json_read(buf_str(&row->json), RECORDS_TEXT_MAX, err);
    own_json brief = json_object();
    if (!result)
        return err_wrap(err, "the result of a run");
    add_brief(brief, result, "stdout");
    add_brief(brief, result, "stderr");
    add_brief(brief, result, "text");
    const json_t *full = json_object_get(result, "error");
    if (json_is_object(full)) {
        json_t *error = json_object();
        add_brief(error, full, "kind");
        add_brief(error, full, "name");
        add_brief(error, full, "message");
        add_brief(error, full, "traceback");
        json_object_set_new(brief, "error", error);
    }
    row->brief = BUF_INIT(RECORDS_TEXT_MAX);
    json_add(&row->brief, brief);
    size_t len = row->json.len;
    struct records_use *use = add_use(row, "result", STR(""), buf_str(&row->json));
    use->owned = buf_take(&row->json);
    use->bytes = (struct str){ use->owned, len };
    memcpy(row->result_sha256, use->sha256, sizeof row->result_sha256);
    return 0;
}

static void prepare_artifacts(const struct redact *redact, struct records_row *row,
                              const struct result *result)
{
    for (size_t i = 0; i < result->artifact_count; i++) {
        const struct result_artifact *artifact = &result->artifacts[i];
        struct str path = { artifact->path, artifact->path_len };
        struct str bytes = { artifact->content, (size_t)artifact->size_bytes };
        if (!artifact->content)
            continue;
        if (str_is(path, SPILLED "stdout"))
            add_text(redact, row, "stdout", bytes);
        else if (str_is(path, SPILLED "stderr"))
            add_text(redact, row, "stderr", bytes);
        else {
            struct records_use *use = add_use(row, "artifact", path, bytes);
            use->mime = artifact->mime;
            redact_path(redact, use);
        }
    }
}

/* The calls of tools, for a replay. The result has the same secrets, where it lists the calls. */
static void prepare_calls(const struct redact *redact, struct records_row *row,
                          const struct result *result)
{
    struct buf text = BUF_INIT(RECORDS_TEXT_MAX);
    if (result->calls_whole.len == 0)
        return;
    size_t found = redact_json_text(redact, buf_str(&result->calls_whole), &text), len = text.len;
    row->redacted = found > row->redacted ? found : row->redacted;
    struct records_use *use = add_use(row, "calls", STR(""), buf_str(&text));
    use->owned = buf_take(&text);
    use->bytes = (struct str){ use->owned, len };
}

static void prepare_failure(const struct redact *redact, struct records_job *job)
{
    own_json refusal = result_refusal(&job->failure);
    own_buf text = BUF_INIT(RECORDS_TEXT_MAX);
    json_add(&text, json_object_get(refusal, "error"));
    job->row.redacted = redact_json_text(redact, buf_str(&text), &job->row.json);
    job->row.status = err_kind_name(job->failure.kind);
    job->row.figures = (struct records_figures){ .refused = true };
}

/* The request had a secret: the sums in its result are keyed as that of its row is. */
static int hide_sums(const struct redact *redact, struct records_row *row, struct err *err)
{
    if (row->json.len > 0 && row->json.at[0] == '[')
        return 0; /* a marker stands for all of it */
    own_json result = json_read(buf_str(&row->json), RECORDS_TEXT_MAX, err);
    if (!result)
        return err_wrap(err, "the result of a run");
    redact_sums(redact, result);
    buf_drop(&row->json, row->json.len);
    if (json_add(&row->json, result) < 0)
        return err_set(err, ERR_LIMIT, "the result is too long for its record");
    return 0;
}

static int prepare_end(const struct redact *redact, struct records_job *job, struct err *err)
{
    const struct result *result = job->result;
    struct records_row *row = &job->row;
    row->json = BUF_INIT(RECORDS_TEXT_MAX);
    memcpy(row->owner, job->record->owner, sizeof row->owner);
    if (!result) {
        prepare_failure(redact, job);
        return 0;
    }
    row->status = result_status_name(result->status);
    row->figures = (struct records_figures){
        .exit_code = result->exit_code,
        .wall_ms = result->wall_ms,
        .cpu_ms = result->cpu_ms,
        .memory_peak_bytes = result->memory_peak_bytes,
        .cell = result->cell,
        .artifacts = result->artifact_count,
    };
    prepare_artifacts(redact, row, result);
    row->redacted += redact_json_text(redact, job->json, &row->json);
    prepare_calls(redact, row, result);
    if (job->record->redacted > 0 && hide_sums(redact, row, err) < 0)
        return -1;
    row->bytes += (int64_t)row->json.len;
    job->record->redacted += row->redacted;
    bool reusable = result->status == RESULT_OK || result->status == RESULT_ERROR;
    if (!reusable || json_array_size(result->limits_hit) > 0 || job->record->redacted > 0 ||
        row->bytes > RECORDS_REUSE_MAX)
        row->cache_key[0] = 0;
    return row->json.len > RECORDS_RESULT_INLINE ? shorten(row, err) : 0;
}

/* --- an act --- */

/* Small bytes of a file come into memory; the sum of others is made in portions. */
static int prepare_spool(struct records_use *use, struct err *err)
{
    char portion[16u << 10];
    struct hash hash;
    size_t size = use->bytes.len, at = 0;
    static_assert(sizeof portion >= CONTENTS_INLINE, "a row's bytes are one portion");
    hash_start(&hash);
    for (ssize_t n; at < size; at += (size_t)n) {
        n = pread(use->spool, portion, size - at < sizeof portion ? size - at : sizeof portion,
                  (off_t)at);
        if (n <= 0)
            return err_sys(err, "read an upload");
        hash_add(&hash, portion, (size_t)n);
    }
    hash_end_hex(&hash, use->sha256);
    if (size > CONTENTS_INLINE)
        return 0;
    free(use->owned);
    use->owned = buf_strdup((struct str){ portion, size });
    use->bytes.at = use->owned;
    return 0;
}

static int prepare_act(const struct redact *redact, struct records_job *job, struct err *err)
{
    own_buf text = BUF_INIT(RECORDS_TEXT_MAX);
    job->row.json = BUF_INIT(RECORDS_TEXT_MAX);
    for (size_t i = 0; i < job->row.uses.count; i++) {
        struct records_use *use = &job->row.uses.at[i];
        job->row.redacted += redact_path(redact, use);
        if (!use->spooled)
            hash_hex(use->bytes, use->sha256);
        else if (prepare_spool(use, err) < 0)
            return -1;
    }
    if (job->detail && json_add(&text, job->detail) == 0)
        job->row.redacted += redact_json_text(redact, buf_str(&text), &job->row.json);
    return 0;
}

int records_prepare(struct records *records, const struct redact *redact, struct records_job *job,
                    struct err *err)
{
    int failed = job->kind == RECORDS_START ? prepare_start(redact, job, err)
                 : job->kind == RECORDS_END ? prepare_end(redact, job, err)
                                            : prepare_act(redact, job, err);
    if (job->kind == RECORDS_START)
        job->record->redacted = job->row.redacted;
    atomic_fetch_add(&records->redacted, (int64_t)job->row.redacted);
    return failed;
}

int records_write_files(int dir, bool durable, const struct records_uses *uses, bool *out_any,
                        struct err *err)
{
    for (size_t i = 0; i < uses->count; i++) {
        if (uses->at[i].bytes.len <= CONTENTS_INLINE)
            continue;
        const struct records_use *use = &uses->at[i];
        *out_any = true;
        if (use->spooled ? contents_write_file(dir, use->sha256, use->spool, use->bytes.len,
                                               durable, err) < 0
                         : contents_write(dir, use->sha256, use->bytes, durable, err) < 0)
            return -1;
    }
    return 0;
}
