/* Any JSON as what a store holds: a record, or a history of a session. A store that somebody edited
 * must not crash a replay, and what it makes is a request that the contract reads or refuses. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "contract/request.h"
#include "replay/calls.h"
#include "replay/diff.h"
#include "replay/lineage.h"
#include "replay/remake.h"
#include "store/records/look.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static const struct request_ceilings ceilings = { .host_memory_bytes = INT64_C(1) << 34 };

static int content(void *user, const char *sha256, struct buf *out, struct err *err)
{
    (void)user;
    return sha256[0] == 'f' ? err_set(err, ERR_ABSENT, "not stored") : buf_add_text(out, sha256);
}

/* The record's own member stands for the stored calls. */
static void as_calls(const json_t *record, const json_t *secrets)
{
    struct err err = ERR_INIT;
    const struct remake remake = { .content = content, .secrets = secrets };
    own_replay_calls calls = { 0 };
    own_json frame = json_pack("{s:{s:s}}", "request", "code", "1");
    if (replay_calls_open(&calls, &remake, record, json_object_get(record, LOOK_CALLS), NULL,
                          &err) < 0 &&
        (err.kind == ERR_NONE || !*err.text))
        abort();
    replay_calls_give(&calls, frame);
    struct past_calls_counts counts = { 0 };
    if (calls.past)
        counts = past_calls_count(calls.past);
    own_json left = calls.past ? past_calls_left(calls.past) : json_array();
    if (json_array_size(left) != counts.left)
        abort();
    own_request request = REQUEST_INIT;
    err = ERR_INIT;
    if (request_from_json(json_object_get(frame, "request"), &ceilings, &request, &err) < 0 &&
        err.kind != ERR_INPUT)
        abort();
}

static void as_record(const json_t *record)
{
    struct err err = ERR_INIT;
    own_json secrets = json_pack("{s:s}", "deadbeef", "secret");
    const struct remake remake = { .content = content, .secrets = secrets };
    own_json same = diff_records(record, record);
    if (json_array_size(same) > 0)
        abort();
    own_json other = diff_records(record, secrets);
    own_json back = diff_records(secrets, record);
    if (json_array_size(other) > DIFF_MAX + 1 || json_array_size(back) > DIFF_MAX + 1)
        abort();
    as_calls(record, secrets);
    own_json frame = remake_run(&remake, record, NULL, &err);
    if (!frame) {
        if (err.kind == ERR_NONE || !*err.text)
            abort();
        return;
    }
    own_request request = REQUEST_INIT;
    json_t *made = json_object_get(frame, "request");
    if (json_object_get(made, "cache") || json_object_get(made, "session"))
        abort();
    if (request_from_json(made, &ceilings, &request, &err) < 0 && err.kind != ERR_INPUT)
        abort();
}

static json_t *history(void *user, const char *session, const char *until, struct err *err)
{
    (void)session;
    (void)until;
    (void)err;
    return json_incref(user);
}

/* The last one is the cell that is wanted. */
static void as_history(json_t *rows)
{
    struct err err = ERR_INIT;
    const struct lineage_source source = { history, rows };
    const struct remake remake = { .content = content };
    const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
    own_json steps = lineage_of(&source, last, &err);
    if (!steps) {
        if (err.kind == ERR_NONE || !*err.text)
            abort();
        return;
    }
    if (json_array_size(steps) > LINEAGE_STEPS_MAX + 1 || json_array_size(steps) < 2)
        abort();
    const json_t *act = json_array_get(steps, 0);
    own_request request = REQUEST_INIT;
    own_json made = remake_session(&remake,
                                   json_object_get(json_object_get(act, "detail"), "request"),
                                   json_object_get(act, "files"), NULL, &err);
    if (made && request_from_session_json(made, &ceilings, &request, &err) < 0 &&
        err.kind != ERR_INPUT)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct err err = ERR_INIT;
    own_json value = json_read((struct str){ (const char *)bytes, len }, 1 << 20, &err);
    if (json_is_array(value))
        as_history(value);
    else if (value)
        as_record(value);
    return 0;
}
