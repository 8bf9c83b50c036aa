/* Files of a session: put, fetched, listed on request. Runs in the engine. */
#include "engine/session/session_ask.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "contract/result.h"
#include "engine/run/run.h"

#define GET_MAX ((uint64_t)1 << 30) /* bytes of one file */
#define UPLOAD_NS (30 * INT64_C(1000000000)) /* for the next part of a file */

/* --- put --- */

static void on_files_noted(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    files_drop(&session->files);
    /* What was put belongs to the state: an undo must not take it back. */
    session->ask = NULL;
    json_object_del(session->request.root, "files"); /* not needed any more, and may be large */
    json_object_set_new(ask->answer, "session", session_info(session));
    if (!ask->silent)
        ask->hooks.on_answer(ask->hooks.user, ask->answer, NULL, NULL);
    session_ask_free(ask);
    session_renew_newest(session);
}

static void on_files_put(struct session *session)
{
    if (!session_ask_after(session))
        return;
    files_drop(&session->files);
    session_note_files(session, on_files_noted);
}

static void await_next_part(struct session *session)
{
    loop_set_timer(&session->engine->loop, &session->uploads, clock_now_ns() + UPLOAD_NS);
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
    struct session *session = loop_owner(timer, struct session, uploads);
    if (part_waits(session))
        await_next_part(session);
    else if (session->porter >= 0 && files_session_abandon(session->porter) < 0)
        await_next_part(session); /* its socket is full */
}

static void on_part_put(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    json_object_set_new(ask->answer, "upload",
                        json_integer((json_int_t)session->files.part.upload));
    files_drop(&session->files);
    await_next_part(session);
    session_ask_info(ask);
}

static void put_part(struct session *session, const struct engine_ask *ask)
{
    static uint32_t uploads; /* numbered so far */
    struct files_part part = { .upload = (uint32_t)ask->what->upload, .more = ask->what->more };
    part.first = part.upload == 0;
    if (part.first)
        part.upload = ++uploads;
    session_await_files(session, part.more ? on_part_put : on_files_put);
    files_session_put_part(&session->files, &session->engine->loop, session->porter,
                           ask->request.files, part, session_files_done);
}

static void on_porter_for_put(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    if (ask->what->more || ask->what->upload) {
        put_part(session, ask);
        return;
    }
    session_await_files(session, on_files_put);
    files_session_put(&session->files, &session->engine->loop, session->porter,
                      ask->request.files, ask->request.file_count, session_files_done);
}

void session_ask_put(struct session *session, struct engine_ask *ask)
{
    (void)ask;
    session_need_porter(session, on_porter_for_put);
}

/* --- get, list --- */

static void on_got(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    struct files_job *job = &session->files;
    struct str content = { job->content, (size_t)job->content_len };
    const char *path = ask->what->path;
    struct result_artifact *file = buf_alloc_zero(1, sizeof *file);
    *file = (struct result_artifact){ .path = buf_strdup(str_of(path)), .path_len = strlen(path),
                                      .size_bytes = content.len,
                                      .mime = result_mime(str_of(path)) };
    memcpy(file->sha256, job->sum, sizeof file->sha256);
    json_object_set_new(ask->answer, "file",
                        json_pack("{s:o, s:I, s:s, s:s}", "path", json_text(str_of(path)),
                                  "size_bytes", (json_int_t)content.len, "sha256", file->sha256,
                                  "mime", file->mime));
    file->content = take_ptr(job->content);
    ask->file = file;
    files_drop(job);
    session_ask_reply(ask, NULL);
}

static void on_listed(struct session *session)
{
    static const char *const types[] = {
        [BOX_ENTRY_FILE] = "file", [BOX_ENTRY_DIR] = "directory", [BOX_ENTRY_LINK] = "link",
        [BOX_ENTRY_OTHER] = "other",
    };
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    json_t *list = json_array();
    for (size_t i = 0; i < session->files.count; i++) {
        const struct files_entry *entry = &session->files.entries[i];
        struct str path = { entry->path, entry->len };
        json_array_append_new(list, json_pack("{s:o, s:s, s:I}", "path", json_text(path), "type",
                                              types[entry->type], "size_bytes",
                                              (json_int_t)entry->size));
    }
    json_object_set_new(ask->answer, "files", list);
    json_object_set_new(ask->answer, "cut", json_boolean(session->files.cut != 0));
    files_drop(&session->files);
    session_ask_reply(ask, NULL);
}

static void on_porter_for_files(struct session *session)
{
    struct engine_ask *ask = session_ask_after(session);
    if (!ask)
        return;
    struct loop *loop = &session->engine->loop;
    bool get = ask->what->what == FRAME_DO_GET;
    session_await_files(session, get ? on_got : on_listed);
    if (get)
        files_session_get(&session->files, loop, session->porter, str_of(ask->what->path), GET_MAX,
                          session_files_done);
    else
        files_session_list(&session->files, loop, session->porter, session_files_done);
}

void session_ask_files(struct session *session, struct engine_ask *ask)
{
    (void)ask;
    session_need_porter(session, on_porter_for_files);
}

