/* An engine and its runs, driven from a test: see the header. */
#include "freeze_place.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "check.h"
#include "contract/frame.h"

#define ORDINARY 61005
#define WAIT_MS 30000
#define ON_THE_WAY_MS 300

static const struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(16) << 30 };

static void on_event(void *user, const struct engine_event *event)
{
    struct place *place = user;
    if (event->kind == ENGINE_STDOUT)
        place->bytes += event->bytes.len;
}

static void on_end(void *user, struct result *result, const struct err *err)
{
    struct place *place = user;
    place->run = NULL;
    if (err)
        place->err = *err;
    if (!result)
        return;
    result_done(&place->result);
    place->result = *result;
    result_init(result); /* taken over */
}

static void on_tick(struct loop_timer *timer)
{
    loop_owner(timer, struct place, tick)->ticked = true;
}

bool place_open(struct place *place, bool as_user)
{
    const struct engine_options options = { .runs_max = 2 };
    *place = (struct place){ .err = ERR_INIT, .request = REQUEST_INIT };
    result_init(&place->result);
    unsetenv("CUPEL_STATE");
    unsetenv("XDG_STATE_HOME");
    unsetenv("HOME"); /* no state directory */
    if (as_user && geteuid() == 0) {
        CHECK_INT(setresgid(ORDINARY, ORDINARY, ORDINARY), 0);
        CHECK_INT(setresuid(ORDINARY, ORDINARY, ORDINARY), 0);
        CHECK_INT(prctl(PR_SET_DUMPABLE, 1), 0);
    }
    loop_due(&place->tick, on_tick);
    place->engine = engine_open(&options, &place->err);
    if (!place->engine)
        printf("# skipped: %s\n", place->err.text);
    return place->engine;
}

static void forget_run(struct place *place)
{
    result_done(&place->result);
    result_init(&place->result);
    request_done(&place->request);
    place->request = REQUEST_INIT;
    place->bytes = 0;
}

void place_close(struct place *place)
{
    engine_close(place->engine);
    json_decref(place->answer);
    result_done(&place->result);
    request_done(&place->request);
}

void place_turn(struct place *place, int64_t ms)
{
    struct loop *loop = engine_loop(place->engine);
    bool ran = place->run;
    place->ticked = false;
    loop_set_timer(loop, &place->tick, clock_now_ns() + ms * CLOCK_MS);
    while (!place->ticked && !(ran && !place->run))
        CHECK_INT(loop_turn(loop), 0);
    loop_set_timer(loop, &place->tick, LOOP_NEVER);
}

void place_end_somehow(struct place *place)
{
    for (int64_t ms = 0; place->run && ms < WAIT_MS; ms += 100)
        place_turn(place, 100);
    CHECK(!place->run);
}

void place_end(struct place *place)
{
    place_end_somehow(place);
    CHECK_TEXT(place->err.text, "");
}

void place_hear(struct place *place)
{
    size_t before = place->bytes;
    for (int64_t ms = 0; place->run && place->bytes == before && ms < WAIT_MS; ms += 10)
        place_turn(place, 10);
    CHECK(place->bytes > before);
}

void place_freeze(struct place *place, bool frozen)
{
    struct err err = ERR_INIT;
    CHECK_INT(engine_run_freeze(place->run, frozen, &err), 0);
}

void place_is_still(struct place *place, int64_t ms)
{
    place_turn(place, ON_THE_WAY_MS);
    size_t before = place->bytes;
    place_turn(place, ms);
    CHECK(place->run);
    CHECK_INT(place->bytes, before);
}

void place_begin(struct place *place, const char *language, const char *code, double timeout_s,
                 const char *session)
{
    const struct engine_hooks hooks = { .on_event = on_event, .on_end = on_end, .user = place };
    struct err err = ERR_INIT;
    own_json cell = json_pack("{s:s, s:{s:f}}", "code", code, "limits", "timeout_s", timeout_s);
    own_json whole = NULL;
    if (session) {
        json_object_set_new(cell, "session", json_string(session));
        whole = request_of_cell(cell, engine_session_request(place->engine, session, &err), &err);
    } else {
        json_object_set_new(cell, "language", json_string(language));
        whole = json_incref(cell);
    }
    forget_run(place);
    CHECK_TEXT(err.text, "");
    CHECK_INT(request_from_json(whole, &ceilings, &place->request, &err), 0);
    place->run = engine_begin(place->engine, &place->request, place, &hooks, &err);
    CHECK_TEXT(err.text, "");
    CHECK(place->run);
}

/* --- sessions --- */

static void on_answer(void *user, json_t *answer, struct result_artifact *file,
                      const struct err *err)
{
    struct place *place = user;
    (void)file;
    CHECK_TEXT(err ? err->text : "", "");
    place->answer = json_incref(answer);
}

static void ask(struct place *place, const struct frame_session *what, struct request *request)
{
    const struct engine_ask_hooks hooks = { .on_answer = on_answer, .user = place };
    struct engine_ask *ask = NULL;
    struct err err = ERR_INIT;
    json_decref(place->answer);
    place->answer = NULL;
    CHECK_INT(engine_ask(place->engine, what, request, &hooks, &ask, &err), 0);
    for (int64_t ms = 0; !place->answer && ms < WAIT_MS; ms += 10)
        place_turn(place, 10);
    CHECK(place->answer);
}

const char *place_session(struct place *place, const char *language)
{
    const struct frame_session what = { .what = FRAME_DO_NEW, .ttl_s = -1, .life_s = -1,
                                  .undo_levels = -1 };
    struct request request = REQUEST_INIT;
    struct err err = ERR_INIT;
    own_json whole = json_pack("{s:s}", "language", language);
    CHECK_INT(request_from_session_json(whole, &ceilings, &request, &err), 0);
    ask(place, &what, &request);
    const json_t *made = json_object_get(place->answer, "session");
    const char *id = json_is_string(made) ? json_string_value(made)
                                          : json_string_value(json_object_get(made, "session"));
    CHECK(id);
    return id;
}
