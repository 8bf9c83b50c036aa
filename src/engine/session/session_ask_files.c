/* Asks about the files of a session: put, remove, get, list. Runs in the engine. */
#include "engine/session/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"
#include "engine/run/run.h"

#define UPLOAD_NS (30 * CLOCK_S) /* for the next part of a file */

/* --- put --- */

void session_ask_on_noted(struct session *session)
{
    struct engine_ask *ask = session->queue.ask;
    files_drop(&session->box.files);
    session->queue.ask = NULL;
    json_object_del(session->request.root, "files"); /* not needed any more, and may be large */
    session_ask_info(ask);
    session_keep_put_files(session);
}

void session_ask_on_put(struct session *session)
{
    struct engine_ask *ask = session->queue.ask;
    if (ask->what->what == FRAME_DO_PUT)
        json_object_set_new(ask->answer, "replaced", json_boolean(session->box.files.changed));
    files_drop(&session->box.files);
    session_note_files(session, SESSION_PUT_NOTING);
}

static void await_next_part(struct session *session)
{
    loop_set_timer(&session->engine->loop, &session->box.uploads, clock_now_ns() + UPLOAD_NS);
}

/* A part has come, but waits for its turn: a cell may take long. */
static bool part_waits(const struct session *session)
{
    for (const struct engine_ask *ask = session->engine->asks; ask; ask = ask->after) {
        if (ask->session == session && ask->what->upload)
            return true;
    }
    return false;
}

void session_on_uploads(struct loop_timer *timer)
{
    struct session *session = loop_owner(timer, struct session, box.uploads);
    if (part_waits(session))
        await_next_part(session);
    else if (session->box.porter >= 0 && files_session_abandon(session->box.porter, 0) < 0)
        await_next_part(session); /* the porter's socket is full */
}

void session_ask_on_part(struct session *session)
{
    struct engine_ask *ask = session->queue.ask;
    json_object_set_new(ask->answer, "upload",
                        json_integer((json_int_t)session->box.files.part.upload));
    files_drop(&session->box.files);
    await_next_part(session);
    session_ask_info(ask);
}

bool session_ask_drop(const struct session *session, uint32_t upload)
{
    return session->box.porter < 0 || files_session_abandon(session->box.porter, upload) == 0;
}

void session_ask_on_put_porter(struct session *session)
{
    static uint32_t uploads; /* the last number given */
    const struct engine_ask *ask = session->queue.ask;
    if (ask->what->what == FRAME_DO_REMOVE) {
        files_session_remove(session_await_files(session, SESSION_REMOVING),
                             str_of(ask->what->path));
        return;
    }
    struct files_part part = { .upload = (uint32_t)ask->what->upload, .more = ask->what->more };
    struct files_job *job = session_await_files(session,
                                                part.more ? SESSION_PUTTING_PART : SESSION_PUTTING);
    if (!part.more && !part.upload) {
        files_session_put(job, ask->request.files, ask->request.file_count);
        return;
    }
    part.first = part.upload == 0;
    if (part.first)
        part.upload = ++uploads;
    files_session_put_part(job, ask->request.files, part);
}

/* --- get, list --- */

/* Two parts of the same version belong together. */
static void add_part(json_t *told, const struct files_job *job, int64_t offset)
{
    char version[64];
    snprintf(version, sizeof version, "%llx-%llx", (unsigned long long)job->inode,
             (unsigned long long)job->ctime_ns);
    json_object_set_new(told, "offset", json_integer(offset));
    json_object_set_new(told, "length", json_integer((json_int_t)job->content_len));
    json_object_set_new(told, "version", json_string(version));
}

void session_ask_on_got(struct session *session)
{
    struct engine_ask *ask = session->queue.ask;
    struct files_job *job = &session->box.files;
    struct str content = { job->content, (size_t)job->content_len };
    const char *path = ask->what->path;
    struct result_artifact *file = buf_alloc_zero(1, sizeof *file);
    *file = (struct result_artifact){ .path = buf_strdup(str_of(path)), .path_len = strlen(path),
                                      .size_bytes = content.len,
                                      .mime = result_mime(str_of(path)) };
    memcpy(file->sha256, job->sum, sizeof file->sha256);
    json_t *told = json_pack("{s:o, s:I, s:s}", "path", json_text(str_of(path)), "size_bytes",
                             (json_int_t)job->whole_size, "mime", file->mime);
    if (ask->what->is_part)
        add_part(told, job, ask->what->offset);
    else
        json_object_set_new(told, "sha256", json_string(file->sha256));
    json_object_set_new(ask->answer, "file", told);
    file->content = take_ptr(job->content);
    ask->file = file;
    files_drop(job);
    session_ask_reply(ask, NULL);
}

void session_ask_on_listed(struct session *session)
{
    static const char *const types[] = {
        [BOX_ENTRY_FILE] = "file", [BOX_ENTRY_DIR] = "directory", [BOX_ENTRY_LINK] = "link",
        [BOX_ENTRY_OTHER] = "other",
    };
    struct engine_ask *ask = session->queue.ask;
    json_t *list = json_array();
    for (size_t i = 0; i < session->box.files.count; i++) {
        const struct files_entry *entry = &session->box.files.entries[i];
        struct str path = { entry->path, entry->len };
        json_array_append_new(list,
                              json_pack("{s:o, s:s, s:I}", "path", json_text(path), "type",
                                        types[entry->type], "size_bytes", (json_int_t)entry->size));
    }
    json_object_set_new(ask->answer, "files", list);
    json_object_set_new(ask->answer, "cut", json_boolean(session->box.files.cut != 0));
    files_drop(&session->box.files);
    session_ask_reply(ask, NULL);
}

void session_ask_on_get_porter(struct session *session)
{
    const struct frame_session *what = session->queue.ask->what;
    if (what->what == FRAME_DO_FILES)
        files_session_list(session_await_files(session, SESSION_LISTING));
    else if (what->is_part && what->length)
        files_session_get_part(session_await_files(session, SESSION_GETTING), str_of(what->path),
                               (uint64_t)what->offset, (uint64_t)what->length);
    else
        files_session_get(session_await_files(session, SESSION_GETTING), str_of(what->path),
                          (uint64_t)what->offset, FRAME_GET_MAX);
}
