/* One session of the measured engine, as a client sees it. Frames are made before the timing
 * starts; answers are searched for a few words, and parsed only after a failure. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "bench.h"

#define FRAME_ROOM 4096
#define PROTECT_MS 60000 /* a session that is not protected by then never will be */
#define CELL_S 60        /* for cells that allocate much, on a busy machine */

static int add_frame(struct buf *to, const json_t *frame, struct err *err)
{
    buf_done(to);
    *to = BUF_INIT(FRAME_ROOM);
    if (frame_add(to, frame, FRAME_ROOM) == 0)
        return 0;
    return err_set(err, ERR_BUG, "what a row asks of a session does not fit into a frame");
}

int bench_session_frame(const struct bench_session *session, const char *what, struct buf *out,
                        struct err *err)
{
    own_json frame = json_pack("{s:s, s:s, s:s, s:s}", "op", "session", "id", "s", "do", what,
                               "session", session->id);
    return add_frame(out, frame, err);
}

int bench_session_cell(const struct bench_session *session, const char *code, struct buf *out,
                       struct err *err)
{
    own_json frame = json_pack("{s:s, s:s, s:{s:s, s:s}}", "op", "run", "id", "c", "request",
                               "session", session->id, "code", code);
    return add_frame(out, frame, err);
}

static int ask(struct bench_client *client, const struct buf *frame, struct err *err)
{
    int got = 0;
    if (bench_send(client, frame, err) < 0)
        return -1;
    while (got == 0)
        got = bench_receive(client, err);
    if (got < 0)
        return -1;
    /* A result may have an error of its own. */
    bool refused = bench_has(client, "\"error\":{") && !bench_has(client, "\"result\":{");
    return refused ? bench_explain(client, err) : 0;
}

int bench_session_ask(struct bench_session *session, const struct buf *frame, struct err *err)
{
    return ask(session->client, frame, err);
}

int bench_session_adopt(struct bench_client *client, struct bench_session *out, struct err *err)
{
    static const char begin[] = "\"session\":{\"session\":\"";
    const char *from = memmem(client->answer, client->got, begin, sizeof begin - 1);
    const char *end = client->answer + client->got;
    size_t len = 0;
    *out = (struct bench_session){ .client = client };
    if (from)
        from += sizeof begin - 1;
    while (from && from + len < end && from[len] != '"' && len < sizeof out->id)
        len++;
    if (len == 0 || len >= sizeof out->id)
        return err_set(err, ERR_BUG, "the engine's answer names no session");
    memcpy(out->id, from, len);
    return 0;
}

int bench_session_open(struct bench_client *client, int64_t memory_bytes, struct bench_session *out,
                       struct err *err)
{
    own_buf frame = BUF_INIT(FRAME_ROOM);
    own_json whole = json_pack("{s:s, s:s, s:s, s:{s:s}}", "op", "session", "id", "s", "do", "new",
                               "request", "language", "python");
    if (memory_bytes > 0)
        json_object_set_new(
            json_object_get(whole, "request"), "limits",
            json_pack("{s:I, s:i}", "memory_bytes", (json_int_t)memory_bytes, "timeout_s", CELL_S));
    if (add_frame(&frame, whole, err) < 0 || ask(client, &frame, err) < 0)
        return -1;
    return bench_session_adopt(client, out, err);
}

void bench_session_done(struct bench_session *session)
{
    own_buf frame = BUF_INIT(FRAME_ROOM);
    struct err ignored = ERR_INIT;
    if (session->id[0] && bench_session_frame(session, "end", &frame, &ignored) == 0)
        bench_session_ask(session, &frame, &ignored);
    buf_done(&session->info);
    *session = (struct bench_session){ 0 };
}

int bench_session_run(struct bench_session *session, const char *code, struct err *err)
{
    own_buf frame = BUF_INIT(FRAME_ROOM);
    double ms;
    bool warm;
    if (bench_session_cell(session, code, &frame, err) < 0)
        return -1;
    return bench_run(session->client, &frame, &ms, &warm, err);
}

/* The last answer says that the session is idle and unprotected. */
static void note_why(struct bench_session *session)
{
    struct str text;
    struct err ignored = ERR_INIT;
    struct str bytes = { session->client->answer, session->client->got };
    snprintf(session->unprotected, sizeof session->unprotected, "nobody says why");
    if (frame_next(bytes, bytes.len, &text, NULL, &ignored) <= 0)
        return;
    own_json answer = json_read(text, text.len, &ignored);
    const char *why = json_string_value(
        json_object_get(json_object_get(answer, "session"), "unprotected"));
    if (why)
        snprintf(session->unprotected, sizeof session->unprotected, "%.150s", why);
}

int bench_session_protected(struct bench_session *session, bool *out, struct err *err)
{
    int64_t from = clock_now_ns();
    *out = false;
    if (session->info.len == 0 && bench_session_frame(session, "info", &session->info, err) < 0)
        return -1;
    while (clock_ms_between(from, clock_now_ns()) < PROTECT_MS) {
        if (bench_session_ask(session, &session->info, err) < 0)
            return -1;
        *out = bench_has(session->client, "\"protected\":true");
        if (*out)
            return 0;
        if (bench_has(session->client, "\"status\":\"idle\"")) {
            note_why(session);
            return 0;
        }
    }
    return err_set(err, ERR_BUG, "a session is not protected after %d s", PROTECT_MS / 1000);
}
