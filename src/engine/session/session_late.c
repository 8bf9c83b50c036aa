/* Late output: what threads, timers and processes of a cell write after its end. It never becomes
 * a part of another cell's output: listeners hear of it at once, and the next result has it apart.
 * Drivers name the cell (talk/order.h), also beside a running one; else it is the last one's.
 * Runs in the engine. Every byte comes from the box: between two cells the engine reads a bounded
 * part of each stream, then the writers wait; a result keeps a bounded text, and counts all. */
#include "engine/session/session.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "engine/run/run.h"

#define CHUNK 65536 /* the capacity of a pipe */
#define GAP_MAX (64u << 10) /* read of one stream between two cells */
#define TEXT_MAX (64u << 10) /* kept of all entries */

static const char *const stream_names[2] = { "stdout", "stderr" };

static int *fd_of(struct session *session, bool is_err)
{
    return &session->streams.fd[is_err ? RUN_ERR : RUN_OUT];
}

/* --- entries --- */

/* One for each cell and stream; the last two are of all other cells. */
static struct session_late_entry *entry_of(struct session_late *late, int64_t cell, bool is_err)
{
    for (unsigned i = 0; i < late->count; i++)
        if (late->entry[i].cell == cell && late->entry[i].is_err == is_err)
            return &late->entry[i];
    bool full = late->count >= SESSION_LATE_ENTRIES - 2;
    if (full && cell != 0)
        return entry_of(late, 0, is_err);
    struct session_late_entry *entry = &late->entry[late->count++];
    *entry = (struct session_late_entry){ .cell = cell, .is_err = is_err,
                                          .text = BUF_INIT(TEXT_MAX) };
    return entry;
}

static json_t *entry_json(const struct session_late_entry *entry)
{
    struct str text = buf_str(&entry->text);
    bool cut = entry->bytes > text.len;
    text.len -= cut ? str_unfinished_utf8(text) : 0;
    json_t *out = json_pack("{s:o, s:s, s:o, s:I}", "cell",
                            entry->cell ? json_integer(entry->cell) : json_null(), "stream",
                            stream_names[entry->is_err], "text", json_text(text), "bytes",
                            (json_int_t)entry->bytes);
    if (!str_is_utf8(text))
        json_object_set_new(out, "base64", base64_json(text));
    return out;
}

json_t *session_late_take(struct session *session)
{
    struct session_late *late = &session->late;
    json_t *out = late->count ? json_array() : NULL;
    for (unsigned i = 0; i < late->count; i++) {
        json_array_append_new(out, entry_json(&late->entry[i]));
        buf_done(&late->entry[i].text);
    }
    late->count = 0;
    late->kept = 0;
    return out;
}

void session_late_done(struct session *session)
{
    json_decref(session_late_take(session));
    order_done(&session->late.order);
}

/* --- events --- */

static void say(const struct session *session, int64_t cell, bool is_err, struct str bytes)
{
    json_t *text = json_stringn(bytes.at, bytes.len);
    own_json event = json_pack("{s:s, s:s, s:o, s:s, s:o}", "event", "output", "session",
                               session->id, "cell", cell ? json_integer(cell) : json_null(),
                               "stream", stream_names[is_err], text ? "text" : "base64",
                               text ? text : base64_json(bytes));
    session_tell(session, event);
}

/* No character is cut in two: its first bytes wait for the rest. */
static void tell(struct session *session, int64_t cell, bool is_err, struct str bytes)
{
    struct session_late_held *held = &session->late.held[is_err];
    own_buf joined = BUF_INIT(CHUNK + sizeof held->bytes);
    if (held->len > 0 && held->cell != cell)
        say(session, held->cell, is_err, (struct str){ held->bytes, held->len });
    else
        buf_add(&joined, held->bytes, held->len);
    buf_add_str(&joined, bytes);
    struct str all = buf_str(&joined);
    held->len = str_unfinished_utf8(all);
    held->cell = cell;
    memcpy(held->bytes, all.at + all.len - held->len, held->len);
    all.len -= held->len;
    if (all.len > 0)
        say(session, cell, is_err, all);
}

void session_late_add(struct session *session, int64_t cell, bool is_err, struct str bytes)
{
    struct session_late *late = &session->late;
    struct session_late_entry *entry = entry_of(late, cell, is_err);
    size_t room = TEXT_MAX - late->kept;
    size_t kept = entry->bytes == entry->text.len ? (bytes.len < room ? bytes.len : room) : 0;
    buf_add(&entry->text, bytes.at, kept);
    late->kept += kept;
    entry->bytes += bytes.len;
    tell(session, cell, is_err, bytes);
}

/* --- the streams, while no cell has them --- */

/* An unknown writer is taken for the last cell's. */
static void on_told(void *user, unsigned pipe, uint32_t cell, struct str bytes)
{
    struct session *session = user;
    bool known = cell > 0 && cell <= session->queue.cells;
    session_late_add(session, known ? cell : session->queue.cells, pipe == 1, bytes);
}

void session_late_init(struct session *session)
{
    session->late.source[0].fd = session->late.source[1].fd = -1;
    order_init(&session->late.order, on_told, session);
}

void session_late_forget(struct session *session)
{
    struct order *order = &session->late.order;
    order_tell_all(order, /* whole= */ true);
    order_done(order);
    order_init(order, on_told, session);
}

/* Reads once; false if there is nothing more now. */
static bool read_late(struct session *session, bool is_err)
{
    static char bytes[CHUNK];
    int *fd = fd_of(session, is_err);
    ssize_t n = *fd >= 0 ? read(*fd, bytes, sizeof bytes) : -1;
    if (n > 0) {
        struct order *order = &session->late.order;
        session->late.gap[is_err] += (size_t)n;
        memcpy(order->secret, session->streams.secret, sizeof order->secret);
        order_add(order, is_err, (struct str){ bytes, (size_t)n });
        order_tell_all(order, /* whole= */ false);
    } else if (n == 0) {
        loop_remove(&session->engine->loop, &session->late.source[is_err]);
        own_close_fd(fd);
    }
    return n > 0 || (n < 0 && *fd >= 0 && errno == EINTR);
}

static void on_late(struct session *session, bool is_err)
{
    read_late(session, is_err);
    if (session->late.gap[is_err] >= GAP_MAX)
        loop_remove(&session->engine->loop, &session->late.source[is_err]);
}

static void on_out(struct loop_source *source, uint32_t events)
{
    (void)events;
    on_late(loop_owner(source, struct session, late.source[0]), /* is_err= */ false);
}

static void on_err(struct loop_source *source, uint32_t events)
{
    (void)events;
    on_late(loop_owner(source, struct session, late.source[1]), /* is_err= */ true);
}

void session_late_watch(struct session *session)
{
    struct loop *loop = &session->engine->loop;
    struct loop_source *source = session->late.source;
    source[0] = (struct loop_source){ *fd_of(session, false), LOOP_HANDLER(on_out) };
    source[1] = (struct loop_source){ *fd_of(session, true), LOOP_HANDLER(on_err) };
    for (int i = 0; i < 2; i++) {
        bool wanted = source[i].fd >= 0 && session->late.gap[i] < GAP_MAX;
        if (!wanted || loop_add(loop, &source[i], EPOLLIN) < 0)
            source[i].fd = -1; /* the next cell's begin reads it */
    }
}

void session_late_unwatch(struct session *session)
{
    for (int i = 0; i < 2; i++)
        loop_remove(&session->engine->loop, &session->late.source[i]);
}

void session_late_drain(struct session *session)
{
    for (int i = 0; i < 2; i++) {
        while (read_late(session, i) && session->late.gap[i] < GAP_MAX)
            ;
        session->late.gap[i] = 0;
    }
}
