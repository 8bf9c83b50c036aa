/* Files out. Runs in the engine. The porter lists and reads; the engine decides by the listed
 * sizes, before reading:
 * 1. It reads only files within the rest of the caps, inputs of unchanged size, and files that a
 *    session reported before. So the caps and the request limit the reading, whatever the code
 *    left: sparse files, thousands of links to one file, thousands of files.
 * 2. Each part is little work, and after a deadline the rest is skipped.
 * 3. Every skipped file is reported with its reason. The output is sorted by name, so that the same
 *    run gives the same list. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "engine/talk/files_int.h"

/* A second for collecting, plus some time for each file and MiB within the caps, which a busy
 * machine may need. The walk has half of that second. */
#define COLLECT_MS 1000
#define WALK_MS 500
#define FILE_MS 10
#define MIB_MS 20
#define AHEAD (4 * BOX_PORTER_PART) /* bytes requested ahead */

static int by_path(const void *a, const void *b)
{
    const struct files_entry *left = a, *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->path, right->path, len);
    return order ? order : (left->len > right->len) - (left->len < right->len);
}

static int by_input_path(const void *a, const void *b)
{
    const struct request_file *const *left = a, *const *right = b;
    return strcmp((*left)->path, (*right)->path);
}

/* --- the list --- */

static void add_entry(struct files_job *job, const struct box_porter_entry *told, const char *path)
{
    job->entries = buf_list_room(job->entries, job->count, sizeof *job->entries);
    job->entries[job->count++] = (struct files_entry){
        .path = buf_strdup((struct str){ path, told->path_len }), .len = told->path_len,
        .type = told->type <= BOX_ENTRY_FRESH ? told->type : BOX_ENTRY_OTHER,
        .mode = told->mode, .size = told->size, .ctime_ns = told->ctime_ns,
    };
}

static int take_entries(struct files_job *job, struct str rest)
{
    struct box_porter_entry told;
    while (rest.len > 0) {
        bool fits = rest.len >= sizeof told;
        if (fits)
            memcpy(&told, rest.at, sizeof told);
        if (!fits || told.path_len >= BOX_PATH_MAX ||
            rest.len < BOX_PORTER_ENTRY_ROOM(told.path_len))
            return err_set(&job->err, ERR_BUG, "the porter's list cannot be read");
        if (job->lists_dirs || told.type != BOX_ENTRY_DIR)
            add_entry(job, &told, rest.at + sizeof told);
        size_t len = BOX_PORTER_ENTRY_ROOM(told.path_len);
        rest = (struct str){ rest.at + len, rest.len - len };
    }
    return 0;
}

static void sort_entries(struct files_job *job)
{
    if (job->count)
        qsort(job->entries, job->count, sizeof *job->entries, by_path);
}

static int hear_entries(struct files_job *job, const struct box_porter_answer *word,
                        const char *bytes)
{
    if (take_entries(job, (struct str){ bytes, word->bytes }) < 0)
        return -1;
    if (!word->last)
        return 0;
    job->cut = word->cut;
    job->heard = files_hear_part;
    sort_entries(job);
    return job->listed(job);
}

int files_ask_list(struct files_job *job, int64_t since_ns)
{
    const struct box_porter_call call = { .op = BOX_PORTER_LIST, .since_ns = since_ns,
                                          .within_ns = WALK_MS * CLOCK_MS };
    job->heard = hear_entries;
    return files_ask(job, &call, -1);
}

/* --- one file, in parts --- */

static int ask_part(struct files_job *job, struct str path)
{
    struct box_porter_call call = { .op = BOX_PORTER_READ, .size = BOX_PORTER_PART,
                                    .offset = job->from + job->content_asked,
                                    .path_len = (uint32_t)path.len };
    memcpy(call.path, path.at, path.len);
    job->content_asked += BOX_PORTER_PART;
    call.once = job->is_part &&
                job->content_asked >= (job->content_size ? job->content_size : job->most);
    return files_ask(job, &call, -1);
}

int files_read(struct files_job *job, struct str path)
{
    files_new_tag(job);
    job->content_len = job->content_asked = 0;
    hash_start(&job->hash);
    return ask_part(job, path);
}

int files_take_part(struct files_job *job, struct str part)
{
    uint64_t left = job->content_size - job->content_len;
    bool ends = part.len < BOX_PORTER_PART || part.len >= left; /* it may have been cut, or grown */
    part.len = part.len < left ? part.len : (size_t)left;
    /* The porter reads on while we work. */
    while (!ends && job->content_asked < job->content_size &&
           job->content_asked - job->content_len < AHEAD) {
        if (ask_part(job, (struct str){ "", 0 }) < 0)
            return -1;
    }
    if (job->content)
        memcpy(job->content + job->content_len, part.at, part.len);
    if (job->content || job->seen)
        hash_add(&job->hash, part.at, part.len);
    job->content_len += part.len;
    if (!ends)
        return 0;
    if (job->content)
        job->content[job->content_len] = 0;
    hash_end_hex(&job->hash, job->sum);
    return 1;
}

/* --- collecting --- */

static struct str path_of(const struct files_entry *entry)
{
    return (struct str){ entry->path, entry->len };
}

static uint64_t bytes_left(const struct files_job *job)
{
    int64_t most = job->request->limits.value[LIMITS_ARTIFACT_BYTES];
    return (uint64_t)most - job->bytes_taken;
}

static bool is_one_too_many(const struct files_job *job)
{
    uint64_t most = (uint64_t)job->request->limits.value[LIMITS_ARTIFACT_FILES];
    return job->files_taken >= most;
}

/* The input of this name, or NULL. Entries are sorted, so each input is visited once. */
static const struct request_file *input_of(struct files_job *job, const struct files_entry *entry)
{
    for (; job->next_input < job->request->file_count; job->next_input++) {
        const struct request_file *file = job->inputs[job->next_input];
        struct files_entry name = { .path = file->path, .len = strlen(file->path) };
        int order = by_path(&name, entry);
        if (order >= 0)
            return order == 0 ? file : NULL;
    }
    return NULL;
}

/* The last collect's entry with this name and ctime, or NULL. */
static const struct files_entry *told_before(const struct files_job *job,
                                             const struct files_entry *entry)
{
    const struct files_seen *seen = job->seen;
    const struct files_entry *found = seen && seen->count
                                          ? bsearch(entry, seen->entries, seen->count,
                                                    sizeof *seen->entries, by_path)
                                          : NULL;
    return found && found->ctime_ns == entry->ctime_ns && found->size == entry->size ? found : NULL;
}

static void skip(struct files_job *job, const struct files_entry *entry, const char *why)
{
    if (!told_before(job, entry))
        result_add_skipped(job->result, path_of(entry), why);
}

static void skip_over_cap(struct files_job *job, const struct files_entry *entry)
{
    bool large = entry->size > bytes_left(job);
    bool *hit = large ? &job->bytes_hit : &job->count_hit;
    *hit = *hit || !told_before(job, entry);
    skip(job, entry,
         large ? "too large: over limits.artifact_bytes" : "too many: over limits.artifact_files");
}

static void skip_unread(struct files_job *job, const struct files_entry *entry, int error)
{
    skip(job, entry,
         error == EACCES   ? "not readable"
         : error == EAGAIN ? "cannot be opened: the code holds a lease on it"
                           : "cannot be opened");
}

/* Is there a reason to read this file at its current size? Stores the reason. */
static bool is_wanted(struct files_job *job, const struct files_entry *entry)
{
    const struct files_entry *before = told_before(job, entry);
    if (job->input && job->input->data.len != entry->size)
        job->input = NULL;
    job->keeps = entry->size <= bytes_left(job) && !is_one_too_many(job);
    if (before && !before->sum[0])
        return false; /* already reported as unread */
    if (job->keeps || job->input || before)
        return true;
    skip_over_cap(job, entry);
    return false;
}

static void say_cut(struct files_job *job)
{
    static const struct {
        uint32_t bit;
        const char *why;
    } reasons[] = {
        { BOX_CUT_COUNT, "not looked at: more than 20000 entries, or 2 MiB of names" },
        { BOX_CUT_DEEP, "not looked at: more than 64 deep, or a path of more than 1023 bytes" },
        { BOX_CUT_TIME, "not looked at: the walk took too long" },
        { BOX_CUT_CLOSED, "not looked at: a directory that cannot be read" },
    };
    for (size_t i = 0; i < array_len(reasons); i++) {
        if (!(job->cut & reasons[i].bit))
            continue;
        job->count_hit = job->count_hit || reasons[i].bit & (BOX_CUT_COUNT | BOX_CUT_DEEP);
        result_add_skipped(job->result, STR_NONE, reasons[i].why);
    }
}

/* Is it a file or folder that the caller attached? */
static bool is_placed(const struct files_job *job, const struct files_entry *entry)
{
    struct str rest = job->places;
    while (rest.len > 1) {
        struct str path = { rest.at + 1, strnlen(rest.at + 1, rest.len - 1) };
        if ((rest.at[0] == 'f' || rest.at[0] == 'd') && str_eq(path, path_of(entry)))
            return true;
        size_t taken = path.len + 2 < rest.len ? path.len + 2 : rest.len;
        rest = (struct str){ rest.at + taken, rest.len - taken };
    }
    return false;
}

int files_read_next(struct files_job *job)
{
    static const char *const not_files[] = { [BOX_ENTRY_LINK] = "not a regular file: a link",
                                             [BOX_ENTRY_OTHER] = "not a regular file" };
    for (; job->next < job->count; job->next++) {
        const struct files_entry *entry = &job->entries[job->next];
        bool link = entry->type == BOX_ENTRY_LINK;
        if (is_placed(job, entry))
            continue;
        if (entry->type != BOX_ENTRY_FILE) {
            skip(job, entry, not_files[link ? BOX_ENTRY_LINK : BOX_ENTRY_OTHER]);
            continue;
        }
        job->input = input_of(job, entry);
        if (is_wanted(job, entry))
            return files_read(job, path_of(entry));
    }
    say_cut(job);
    return 1;
}

static int go_on(struct files_job *job)
{
    free(job->content);
    job->content = NULL;
    job->next++;
    return files_read_next(job);
}

/* The first part has the file's current size; in a session it may differ from the list. Content is
 * kept only if it can become an artifact. */
static bool begin_content(struct files_job *job, struct files_entry *entry, uint64_t size)
{
    if (size != entry->size) {
        entry->size = size;
        if (!is_wanted(job, entry))
            return false;
    }
    job->content_size = size;
    if (job->keeps && !job->input)
        job->content = buf_alloc((size_t)size + 1);
    return true;
}

static int end_content(struct files_job *job, struct files_entry *entry)
{
    const struct files_entry *before = told_before(job, entry);
    if (job->seen)
        memcpy(entry->sum, job->sum, sizeof entry->sum);
    /* A ctime is only as exact as a tick: the same one may be another content. */
    if (job->input || (before && strcmp(before->sum, job->sum) == 0))
        return go_on(job);
    if (!job->content) {
        skip_over_cap(job, entry);
        return go_on(job);
    }
    job->bytes_taken += job->content_len;
    job->files_taken++;
    result_add_artifact(job->result, path_of(entry), take_ptr(job->content), job->content_len,
                        job->sum);
    return go_on(job);
}

/* Does `part` follow in `whole` after `at` bytes, ending where `whole` ends? */
static bool continues(struct str whole, uint64_t at, struct str part)
{
    uint64_t left = whole.len - at;
    return part.len <= left && (part.len > 0 || left == 0) &&
           memcmp(part.at, whole.at + at, part.len) == 0;
}

int files_hear_part(struct files_job *job, const struct box_porter_answer *word, const char *bytes)
{
    struct files_entry *entry = &job->entries[job->next];
    struct str part = { bytes, word->bytes };
    if (word->error) {
        skip_unread(job, entry, word->error);
        return go_on(job);
    }
    if (job->content_len == 0 && !job->content && !begin_content(job, entry, word->size))
        return go_on(job);
    if (job->input && !continues(job->input->data, job->content_len, part)) {
        job->input = NULL; /* it was changed: read it again as an ordinary file */
        if (!is_wanted(job, entry))
            return go_on(job);
        return files_read(job, path_of(entry));
    }
    int whole = files_take_part(job, part);
    return whole > 0 ? end_content(job, entry) : whole;
}

/* --- time --- */

static void on_deadline(struct loop_timer *timer)
{
    struct files_job *job = loop_owner(timer, struct files_job, deadline);
    static const char why[] = "not looked at: collecting took too long";
    if (job->heard != files_hear_part) { /* the list is incomplete */
        sort_entries(job);
        job->cut |= BOX_CUT_TIME;
    }
    for (; job->next < job->count; job->next++)
        skip(job, &job->entries[job->next], why);
    say_cut(job);
    files_finish(job);
}

void files_set_deadline(struct files_job *job)
{
    const int64_t *caps = job->request->limits.value;
    int64_t more_ms = caps[LIMITS_ARTIFACT_FILES] * FILE_MS +
                      (caps[LIMITS_ARTIFACT_BYTES] >> 20) * MIB_MS;
    loop_due(&job->deadline, on_deadline);
    loop_set_timer(job->loop, &job->deadline, clock_now_ns() + (COLLECT_MS + more_ms) * CLOCK_MS);
    size_t count = job->request->file_count;
    job->inputs = count ? buf_alloc_zero(count, sizeof *job->inputs) : NULL;
    for (size_t i = 0; i < count; i++)
        job->inputs[i] = &job->request->files[i];
    if (count)
        qsort(job->inputs, count, sizeof *job->inputs, by_input_path);
}

void files_collect(struct files_job *job, struct loop *loop, int sock,
                   const struct request *request, struct result *result,
                   void (*done)(struct files_job *job))
{
    files_begin(job, loop, sock, done);
    job->request = request;
    job->result = result;
    job->listed = files_read_next;
    files_set_deadline(job);
    files_started(job, job->err.kind != ERR_NONE ? -1 : files_ask_list(job, 0));
}
