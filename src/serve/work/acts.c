/* Acts on sessions become records. Runs in the serve process, in its loop. */
#include "serve/work/acts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"

/* A file that comes in parts. */
struct upload {
    struct upload *next;
    char session[REQUEST_SESSION_LEN + 1];
    int64_t number;
    int file; /* a memfd with the bytes so far: they are not in our own memory */
    size_t size, most;
    bool lost; /* too large to be kept */
};

struct acts {
    const struct engine *engine;
    const struct works *works;
    struct upload *uploads; /* the newest first */
    size_t count, bytes;
};

struct act {
    struct acts *acts;
    const struct frame_session *what; /* the door's, until the answer */
    const struct request_file *files; /* the engine's, until the answer */
    size_t file_count;
    json_t *texts; /* the files may be views of it; or NULL */
};

struct acts *acts_new(const struct engine *engine, const struct works *works)
{
    struct acts *acts = buf_alloc_zero(1, sizeof *acts);
    acts->engine = engine;
    acts->works = works;
    return acts;
}

/* --- uploads --- */

static void upload_free(struct acts *acts, struct upload **at)
{
    struct upload *upload = *at;
    *at = upload->next;
    acts->count--;
    acts->bytes -= upload->lost ? 0 : upload->size;
    own_close_fd(&upload->file);
    free(upload);
}

void acts_free(struct acts *acts)
{
    if (!acts)
        return;
    while (acts->uploads)
        upload_free(acts, &acts->uploads);
    free(acts);
}

static struct upload **upload_find(struct acts *acts, const char *session, int64_t number)
{
    struct upload **at = &acts->uploads;
    while (*at && ((*at)->number != number || strcmp((*at)->session, session) != 0))
        at = &(*at)->next;
    return at;
}

static size_t input_bytes(const struct acts *acts, const char *session)
{
    struct err gone = ERR_INIT;
    const struct request *request = engine_session_request(acts->engine, session, &gone);
    return request ? (size_t)request->limits.value[LIMITS_INPUT] : 0;
}

static struct upload *upload_new(struct acts *acts, const char *session, int64_t number)
{
    struct upload *upload = buf_alloc_zero(1, sizeof *upload);
    while (acts->count >= ACTS_UPLOADS) {
        struct upload **last = &acts->uploads;
        while ((*last)->next)
            last = &(*last)->next;
        upload_free(acts, last);
    }
    snprintf(upload->session, sizeof upload->session, "%s", session);
    upload->number = number;
    upload->file = memfd_create("cupel-upload", MFD_CLOEXEC);
    upload->lost = upload->file < 0;
    upload->most = input_bytes(acts, session);
    upload->next = acts->uploads;
    acts->uploads = upload;
    acts->count++;
    return upload;
}

static void upload_add(struct acts *acts, struct upload *upload, struct str part)
{
    bool fits = part.len <= upload->most && upload->size <= upload->most - part.len &&
                acts->bytes + part.len <= ACTS_BYTES;
    if (!upload->lost && (!fits || io_write_all(upload->file, part.at, part.len) < 0)) {
        upload->lost = true;
        acts->bytes -= upload->size;
        own_close_fd(&upload->file);
    }
    acts->bytes += upload->lost ? 0 : part.len;
    upload->size += part.len;
}

/* --- records --- */

static const char *const kinds[FRAME_DOS] = {
    [FRAME_DO_NEW] = "new",           [FRAME_DO_PUT] = "put",   [FRAME_DO_REMOVE] = "remove",
    [FRAME_DO_UNDO] = "undo",         [FRAME_DO_FORK] = "fork",
    [FRAME_DO_CHECKPOINT] = "checkpoint",
};

static void set_text(json_t *detail, const char *name, const char *text)
{
    if (text)
        json_object_set_new(detail, name, json_text(str_of(text)));
}

static void copy(json_t *detail, const json_t *info, const char *name)
{
    json_t *value = json_object_get(info, name);
    if (value)
        json_object_set_new(detail, name, json_deep_copy(value));
}

static json_t *detail_of(const struct act *act, const json_t *info)
{
    const struct frame_session *what = act->what;
    json_t *detail = json_object();
    copy(detail, info, "cell");
    copy(detail, info, "state_cell");
    if (what->what == FRAME_DO_NEW) {
        json_t *request = what->request ? json_copy(what->request) : json_object();
        json_object_del(request, "files");
        json_object_set_new(detail, "request", json_deep_copy(request));
        json_decref(request);
        copy(detail, info, "limits");
    }
    set_text(detail, "path", what->what == FRAME_DO_REMOVE ? what->path : NULL);
    set_text(detail, "name", what->what == FRAME_DO_CHECKPOINT ? what->name : NULL);
    set_text(detail, "to", what->what == FRAME_DO_UNDO ? what->to : NULL);
    set_text(detail, "from", what->what == FRAME_DO_FORK ? what->session : NULL);
    return detail;
}

/* `spool` has the bytes of the only file, or is NULL; it is taken over. */
static void record(const struct act *act, const char *owner, const json_t *info,
                   const struct request *files, int *spool, json_t *not_stored)
{
    const char *session = json_string_value(json_object_get(info, "session"));
    own_json detail = detail_of(act, info);
    if (not_stored)
        json_object_set_new(detail, "not_stored", not_stored);
    if (!session) {
        if (spool)
            own_close_fd(spool);
        return;
    }
    const struct records_act made = {
        .session = session, .owner = owner, .kind = kinds[act->what->what],
        .detail = json_incref(detail), .request = files, .spool = spool,
    };
    records_act(works_records(act->acts->works), &made);
}

/* The last part of an upload, or another one. */
static void record_part(const struct act *act, const char *owner, const json_t *answer)
{
    struct acts *acts = act->acts;
    const struct frame_session *what = act->what;
    json_int_t told = json_integer_value(json_object_get(answer, "upload"));
    int64_t number = what->upload ? what->upload : told;
    struct upload **at = upload_find(acts, what->session, number);
    struct upload *upload = *at ? *at : upload_new(acts, what->session, number);
    if (upload != *at) {
        at = upload_find(acts, what->session, number);
        if (what->upload) { /* its first parts were forgotten */
            upload->lost = true;
            own_close_fd(&upload->file);
        }
    }
    if (act->file_count == 1)
        upload_add(acts, upload, act->files[0].data);
    if (what->more)
        return;
    struct request_file file = { .path = act->file_count ? act->files[0].path : NULL,
                                 .data = { NULL, upload->size },
                                 .readonly = act->file_count && act->files[0].readonly };
    const struct request whole = { .files = &file, .file_count = 1 };
    json_t *lost = NULL;
    if (upload->lost && file.path)
        lost = json_pack("[{s:o, s:I}]", "path", json_text(str_of(file.path)), "size_bytes",
                         (json_int_t)upload->size);
    if (file.path) {
        int spool = take_fd(&upload->file);
        record(act, owner, json_object_get(answer, "session"), lost ? NULL : &whole,
               lost ? NULL : &spool, lost);
    }
    upload_free(acts, at);
}

/* number 0: all of the session. */
static void forget_uploads(struct acts *acts, const char *session, int64_t number)
{
    for (struct upload **at = &acts->uploads; *at;) {
        if (strcmp((*at)->session, session) == 0 && (!number || (*at)->number == number))
            upload_free(acts, at);
        else
            at = &(*at)->next;
    }
}

void acts_session_ended(void *user, const char *session)
{
    struct acts *acts = user;
    const struct records_act end = { .session = session, .owner = "", .kind = "end" };
    forget_uploads(acts, session, 0);
    if (works_records(acts->works))
        records_act(works_records(acts->works), &end);
}

struct act *act_begin(struct acts *acts, const struct frame_session *what,
                      const struct request *request)
{
    if (!works_records(acts->works) || (!kinds[what->what] && what->what != FRAME_DO_DROP))
        return NULL;
    struct act *act = buf_alloc_zero(1, sizeof *act);
    *act = (struct act){ .acts = acts, .what = what, .files = request->files,
                         .file_count = request->file_count,
                         .texts = json_incref(json_object_get(request->root, "files")) };
    return act;
}

void act_end(struct act *act, const char *owner, const json_t *answer)
{
    if (!act)
        return;
    const struct frame_session *what = act->what;
    const struct request files = { .files = (struct request_file *)(uintptr_t)act->files,
                                   .file_count = act->file_count };
    bool done = answer && works_records(act->acts->works);
    bool part = what->what == FRAME_DO_PUT && (what->more || what->upload);
    if (done && what->what == FRAME_DO_DROP)
        forget_uploads(act->acts, what->session, what->upload);
    if (done && part)
        record_part(act, owner, answer);
    else if (done && kinds[what->what])
        record(act, owner, json_object_get(answer, "session"), act->file_count ? &files : NULL,
               /* spool= */ NULL, NULL);
    json_decref(act->texts);
    free(act);
}
