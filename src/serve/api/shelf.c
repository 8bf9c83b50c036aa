/* The files of a session whose time is over stay for a while. Runs in the serve process.
 * 1. The engine tells that a session's time is over; if it is a token's, an heir is made, and the
 *    session waits for it (engine_on_expiry).
 * 2. The heir lists the files, gets each in parts, puts the parts on the shelf (store/shelf.h), and
 *    ends the session. A few heirs work at once, the others wait in line.
 * 3. The engine ends the session anyway after ENGINE_HEIR_S: what is on the shelf by then stays.
 * The bytes are bounded by the session's disk, in parts of PART bytes. */
#include "store/shelf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/own.h"
#include "contract/frame.h"
#include "contract/result.h"
#include "serve/api/api.h"
#include "serve/api/bytes.h"

#define PART (512 << 10)
#define HEIRS 4 /* at once */
#define OWNER_BYTES ((int64_t)4 << 30)
#define ALL_BYTES ((int64_t)32 << 30)
#define SESSIONS 1000

struct heir {
    struct heir *next;
    struct api *api;
    char session[REQUEST_SESSION_LEN + 1], owner[WHO_ID_ROOM];
    struct frame_session what;
    bool works;
    struct shelf_put *put;
    json_t *files; /* of the answer; those that are kept have their true size */
    bool cut;
    size_t at; /* the current file */
    int64_t offset, room;
};

struct api_shelf {
    struct api *api;
    struct shelf *shelf; /* NULL: closed */
    struct heir *heirs;
    struct loop_timer timer;
};

static void next_file(struct heir *heir);
static void work(struct api *api);

/* --- the end of an heir --- */

static void heir_free(struct heir *heir)
{
    struct heir **at = &heir->api->shelf->heirs;
    while (*at != heir)
        at = &(*at)->next;
    *at = heir->next;
    shelf_put_free(heir->put);
    json_decref(heir->files);
    free(heir);
}

static void on_ended(void *user, json_t *answer, struct result_artifact *file,
                     const struct err *err)
{
    struct heir *heir = user;
    struct api *api = heir->api;
    (void)answer;
    (void)file;
    (void)err; /* it ended before */
    if (!api->shelf->shelf)
        return;
    heir_free(heir);
    work(api);
}

static void ask(struct heir *heir, struct frame_session what,
                void (*heard)(void *user, json_t *answer, struct result_artifact *file,
                              const struct err *err))
{
    own_request none = REQUEST_INIT;
    struct err err = ERR_INIT;
    struct engine_ask *begun;
    const struct engine_ask_hooks hooks = { heard, heir };
    heir->what = what;
    heir->what.session = heir->session;
    heir->what.is_heir = true;
    if (engine_ask(heir->api->engine, &heir->what, &none, &hooks, &begun, &err) < 0)
        heard(heir, NULL, NULL, &err);
}

static void end_session(struct heir *heir)
{
    ask(heir, (struct frame_session){ .what = FRAME_DO_END }, on_ended);
}

static void log_kept(const struct heir *heir, const struct err *err)
{
    json_t *line = json_pack("{s:s}", "session", heir->session);
    if (err)
        json_object_set_new(line, "error", json_text(str_of(err->text)));
    log_line(err ? LOG_LINE_WARN : LOG_LINE_INFO, err ? "files lost" : "files kept", line);
}

/* --- one file after the other --- */

/* The shelf has a part, or all of it, or failed. */
static void on_shelf(void *user, const struct err *err)
{
    struct heir *heir = user;
    if (err->kind != ERR_NONE || !heir->files) {
        log_kept(heir, err->kind != ERR_NONE ? err : NULL);
        end_session(heir);
        return;
    }
    next_file(heir);
}

static void finish(struct heir *heir)
{
    shelf_put_end(heir->put, json_pack("{s:s, s:o, s:b}", "session", heir->session, "files",
                                       take_ptr(heir->files), "cut", (int)heir->cut));
}

static json_t *current(const struct heir *heir)
{
    return json_array_get(heir->files, heir->at);
}

/* The file is as long as what came of it. */
static void leave_file(struct heir *heir)
{
    json_object_set_new(current(heir), "size_bytes", json_integer(heir->offset));
    heir->at++;
    heir->offset = 0;
}

static void drop_file(struct heir *heir)
{
    json_array_remove(heir->files, heir->at);
    heir->offset = 0;
    heir->cut = true;
}

static void drop_rest(struct heir *heir)
{
    while (current(heir))
        drop_file(heir);
}

static void on_part(void *user, json_t *answer, struct result_artifact *file, const struct err *err)
{
    struct heir *heir = user;
    int64_t size = json_integer_value(
        json_object_get(json_object_get(answer, "file"), "size_bytes"));
    int64_t len = file ? (int64_t)file->size_bytes : 0;
    if (!heir->api->shelf->shelf)
        return;
    if (err || !file || len > heir->room) {
        bool of_file = err && (err->kind == ERR_INPUT ||
                               (err->kind == ERR_ABSENT && strcmp(err->field, "session") != 0));
        if (heir->offset > 0) /* its beginning is on the shelf */
            leave_file(heir);
        else
            drop_file(heir);
        heir->cut = true;
        if (!of_file)
            drop_rest(heir);
        next_file(heir);
        return;
    }
    size_t number = heir->at;
    heir->room -= len;
    heir->offset += len;
    if (heir->offset >= size || len == 0)
        leave_file(heir);
    shelf_put_add(heir->put, number, take_ptr(file->content), (size_t)len);
}

static void next_file(struct heir *heir)
{
    while (current(heir) && !str_is(json_get_str(current(heir), "type"), "file"))
        heir->at++;
    if (!current(heir)) {
        finish(heir);
        return;
    }
    ask(heir, (struct frame_session){ .what = FRAME_DO_GET, .is_part = true, .length = PART,
                                      .offset = heir->offset,
                                      .path = json_string_value(json_object_get(current(heir),
                                                                                "path")) },
        on_part);
}

static void on_list(void *user, json_t *answer, struct result_artifact *file, const struct err *err)
{
    struct heir *heir = user;
    (void)file;
    if (!heir->api->shelf->shelf)
        return;
    if (err) {
        log_kept(heir, err);
        end_session(heir);
        return;
    }
    heir->files = json_incref(json_object_get(answer, "files"));
    heir->cut = json_is_true(json_object_get(answer, "cut"));
    heir->put = shelf_put(heir->api->shelf->shelf, heir->session, heir->owner, on_shelf, heir);
    next_file(heir);
}

/* --- whose turn it is --- */

static void work(struct api *api)
{
    unsigned busy = 0;
    for (const struct heir *heir = api->shelf->heirs; heir; heir = heir->next)
        busy += heir->works;
    for (struct heir *heir = api->shelf->heirs; heir && busy < HEIRS; heir = heir->next) {
        if (heir->works)
            continue;
        heir->works = true;
        ask(heir, (struct frame_session){ .what = FRAME_DO_FILES }, on_list);
        loop_set_timer(api->loop, &api->shelf->timer, 0); /* the list may be another by now */
        return;
    }
}

static void on_timer(struct loop_timer *timer)
{
    work(loop_owner(timer, struct api_shelf, timer)->api);
}

static bool on_expiry(void *user, const char *session)
{
    struct api *api = user;
    struct err err = ERR_INIT;
    const char *owner = api_session_owner(api, session);
    const struct request *request = engine_session_request(api->engine, session, &err);
    if (!*owner || !request || api->draining || api->options.keep_files_s == 0)
        return false;
    struct heir *heir = buf_alloc_zero(1, sizeof *heir);
    *heir = (struct heir){ .api = api, .room = request->limits.value[LIMITS_DISK] };
    snprintf(heir->session, sizeof heir->session, "%s", session);
    snprintf(heir->owner, sizeof heir->owner, "%s", owner);
    struct heir **end = &api->shelf->heirs;
    while (*end)
        end = &(*end)->next;
    *end = heir;
    loop_set_timer(api->loop, &api->shelf->timer, 0);
    return true;
}

/* --- out --- */

static const char *find(const struct http_exchange *x)
{
    const struct api *api = api_of(x);
    const char *owner = api->shelf ? shelf_owner(api->shelf->shelf, x->arg[0]) : NULL;
    return owner && who_may_see(x->who, owner) ? x->arg[0] : NULL;
}

/* NULL after a reply. */
static json_t *read_about(struct http_exchange *x, const char *session)
{
    static const char *const none[] = { NULL };
    struct err err = ERR_INIT;
    json_t *about = NULL;
    if (http_query_only(x, none, &err) == 0)
        about = shelf_about(api_of(x)->shelf->shelf, session, &err);
    if (!about)
        http_reply_err(x, &err);
    return about;
}

bool api_shelf_list(struct http_exchange *x)
{
    const char *session = find(x);
    char until[32];
    struct tm parts;
    if (!session)
        return false;
    own_json about = read_about(x, session);
    if (!about)
        return true;
    time_t at = (time_t)(json_integer_value(json_object_get(about, "ended_at")) +
                         api_of(x)->options.keep_files_s);
    strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&at, &parts));
    http_reply_json(x, 200,
                    json_pack("{s:O, s:O, s:s}", "files", json_object_get(about, "files"), "cut",
                              json_object_get(about, "cut"), "kept_until", until));
    return true;
}

static bool find_file(const json_t *about, const char *path, size_t *out_number)
{
    const json_t *files = json_object_get(about, "files"), *file;
    size_t i;
    json_array_foreach (files, i, file) {
        *out_number = i;
        if (str_is(json_get_str(file, "path"), path) && str_is(json_get_str(file, "type"), "file"))
            return true;
    }
    return false;
}

bool api_shelf_remove(struct http_exchange *x)
{
    static const char *const none[] = { NULL };
    struct err err = ERR_INIT;
    const char *session = find(x);
    if (!session)
        return false;
    if (http_query_only(x, none, &err) < 0) {
        http_reply_err(x, &err);
        return true;
    }
    shelf_remove(api_of(x)->shelf->shelf, session);
    http_reply_empty(x, 204);
    return true;
}

bool api_shelf_get(struct http_exchange *x)
{
    const char *session = find(x);
    struct err err = ERR_INIT;
    size_t number = 0;
    uint64_t size = 0;
    if (!session)
        return false;
    own_json about = read_about(x, session);
    if (!about)
        return true;
    own_fd fd = -1;
    if (!find_file(about, x->arg[1], &number))
        err_set(&err, ERR_ABSENT, "no such file in the session");
    else
        fd = shelf_file(api_of(x)->shelf->shelf, session, number, &size, &err);
    if (fd < 0)
        http_reply_err(x, &err);
    else
        bytes_reply_file(x, take_fd(&fd), size, result_mime(str_of(x->arg[1])), x->arg[1], NULL);
    return true;
}

/* --- the whole --- */

static void counted(void *user, const char *owner, int64_t bytes)
{
    struct api *api = user;
    who_stored_by(api->who, owner, bytes);
}

int api_shelf_open(struct api *api, struct err *err)
{
    struct shelf *shelf = shelf_open(
        &(struct shelf_options){ .loop = api->loop, .errands = api->errands,
                                 .state_dir = api->options.state_dir,
                                 .age_s = api->options.keep_files_s, .owner_bytes = OWNER_BYTES,
                                 .bytes = ALL_BYTES, .sessions = SESSIONS, .counted = counted,
                                 .user = api }, err);
    if (!shelf)
        return -1;
    api->shelf = buf_alloc_zero(1, sizeof *api->shelf);
    *api->shelf = (struct api_shelf){ .api = api, .shelf = shelf,
                                      .timer = { .due = LOOP_HANDLER(on_timer) } };
    engine_on_expiry(api->engine, on_expiry, api);
    return 0;
}

void api_shelf_reload(struct api *api)
{
    if (api->shelf)
        shelf_set_age(api->shelf->shelf, api->options.keep_files_s);
}

/* The engine may still hold asks of the heirs: they stay until it is gone. */
void api_shelf_close(struct api *api)
{
    if (!api->shelf)
        return;
    engine_on_expiry(api->engine, NULL, NULL);
    loop_set_timer(api->loop, &api->shelf->timer, LOOP_NEVER);
    for (struct heir *heir = api->shelf->heirs; heir; heir = heir->next)
        shelf_put_free(take_ptr(heir->put));
    shelf_close(take_ptr(api->shelf->shelf));
}

void api_shelf_free(struct api_shelf *shelf)
{
    while (shelf && shelf->heirs)
        heir_free(shelf->heirs);
    free(shelf);
}
