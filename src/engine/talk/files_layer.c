/* The layer of changes of a folder, out of a dead box. Runs in the engine. Each entry of the
 * porter's list becomes one of the result; files and links are read, as long as all of them fit
 * into the bytes that the box could write: a sparse file may claim to be larger. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/own.h"
#include "engine/talk/files_int.h"

#define COLLECT_MS 60000
#define TARGET_MAX 4095 /* bytes of a link's target */

static struct str path_of(const struct files_entry *entry)
{
    return (struct str){ entry->path, entry->len };
}

static void skip(struct files_job *job, const char *why)
{
    result_add_skipped(job->result, path_of(&job->entries[job->next]), why);
    job->result->layer_cut = true;
}

static uint64_t room_left(const struct files_job *job)
{
    return (uint64_t)job->request->limits.value[LIMITS_DISK] - job->bytes_taken;
}

static files_heard hear;

/* Adds an entry that needs no reading. */
static void add(struct files_job *job, enum result_layer_kind kind)
{
    const struct files_entry *entry = &job->entries[job->next];
    result_add_layer(job->result, path_of(entry), kind, entry->mode);
}

static int read_next(struct files_job *job)
{
    for (; job->next < job->count; job->next++) {
        const struct files_entry *entry = &job->entries[job->next];
        bool reads = entry->type == BOX_ENTRY_FILE || entry->type == BOX_ENTRY_LINK;
        if (reads && entry->size <= room_left(job))
            return files_read(job, path_of(entry));
        if (reads)
            skip(job, "too large: more than limits.disk_bytes, with the files before it");
        else if (entry->type == BOX_ENTRY_DIR)
            add(job, RESULT_LAYER_DIR);
        else if (entry->type == BOX_ENTRY_FRESH)
            add(job, RESULT_LAYER_FRESH);
        else if (entry->type == BOX_ENTRY_GONE)
            add(job, RESULT_LAYER_GONE);
        else /* it could never be brought: the rest is whole without it */
            result_add_skipped(job->result, path_of(entry),
                               "not a regular file, a link or a folder");
    }
    return 1;
}

static int go_on(struct files_job *job)
{
    free(job->content);
    job->content = NULL;
    job->next++;
    return read_next(job);
}

static void take_whole(struct files_job *job)
{
    const struct files_entry *entry = &job->entries[job->next];
    bool link = entry->type == BOX_ENTRY_LINK;
    struct result_layer *to = result_add_layer(
        job->result, path_of(entry), link ? RESULT_LAYER_LINK : RESULT_LAYER_FILE, entry->mode);
    to->size_bytes = job->content_len;
    to->content = take_ptr(job->content);
    memcpy(to->sha256, job->sum, sizeof to->sha256);
    job->bytes_taken += job->content_len;
}

static int hear(struct files_job *job, const struct box_porter_answer *word, const char *bytes)
{
    const struct files_entry *entry = &job->entries[job->next];
    uint64_t most = entry->type == BOX_ENTRY_LINK ? TARGET_MAX : room_left(job);
    if (word->error || (job->content_len == 0 && !job->content && word->size > most)) {
        skip(job, word->error ? "cannot be opened" : "too large");
        return go_on(job);
    }
    if (job->content_len == 0 && !job->content) {
        job->content_size = word->size;
        job->content = buf_alloc((size_t)word->size + 1);
    }
    int whole = files_take_part(job, (struct str){ bytes, word->bytes });
    if (whole <= 0)
        return whole;
    take_whole(job);
    return go_on(job);
}

static int on_listed(struct files_job *job)
{
    if (job->cut) {
        job->result->layer_cut = true;
        result_add_skipped(job->result, STR_NONE,
                           "not looked at: more than 20000 changes, or paths that are too deep");
    }
    job->heard = hear;
    return read_next(job);
}

static void on_late(struct loop_timer *timer)
{
    struct files_job *job = loop_owner(timer, struct files_job, deadline);
    job->result->layer_cut = true;
    result_add_skipped(job->result, STR_NONE, "not looked at: collecting took too long");
    files_finish(job);
}

void files_collect_layer(struct files_job *job, struct loop *loop, int sock,
                         const struct request *request, struct result *result,
                         void (*done)(struct files_job *job))
{
    files_begin(job, loop, sock, done);
    job->request = request;
    job->result = result;
    job->listed = on_listed;
    job->lists_dirs = true;
    loop_due(&job->deadline, on_late);
    loop_set_timer(loop, &job->deadline, clock_now_ns() + COLLECT_MS * CLOCK_MS);
    files_started(job, job->err.kind != ERR_NONE ? -1 : files_ask_list(job, 0));
}
