/* Any JSON as what a store, or an old transcript, holds of a task: its events. A record that
 * somebody edited must not crash a replay, a resume or an export. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/past.h"
#include "base/json.h"
#include "base/own.h"
#include "store/tasks/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void as_question(const json_t *events, size_t which, bool replays)
{
    struct err err = ERR_INIT;
    struct agent_past past = AGENT_PAST_INIT;
    struct agent_budget budget = { 0 };
    if (agent_past_read(events, which, replays, &past, &err) < 0)
        abort(); /* it was counted */
    agent_past_budget(&past, &budget);
    if ((agent_past_may_resume(&past, &err) < 0 || agent_past_is_whole(&past, &err) < 0) &&
        (err.kind != ERR_CONFLICT || !*err.text))
        abort();
    own_json differences = json_array();
    agent_past_compare(&past, past.report, differences);
    agent_past_compare(&past, past.task, differences);
    agent_past_done(&past);
}

static void as_document(const json_t *events, enum export_form form)
{
    struct err err = ERR_INIT;
    own_buf out = BUF_INIT(16u << 20);
    own_json row = json_pack("{s:s, s:s}", "task", "t_1", "status", "failed");
    own_json pictures = json_pack("{s:{s:s, s:s}}", "a.png", "mime", "image/png", "base64", "AAAA");
    const json_t *first = json_object_get(json_array_get(events, 0), "data");
    if (json_is_object(first)) /* a ROW of any form, too */
        json_object_update_missing(row, (json_t *)(uintptr_t)first);
    if (export_write(form, row, events, pictures, &out, &err) < 0 && err.kind != ERR_LIMIT)
        abort();
    if (form == EXPORT_HTML && out.len > 0 && memmem(out.at, out.len, "<script", 7))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct err err = ERR_INIT;
    own_json events = json_read((struct str){ (const char *)bytes, len }, 1 << 20, &err);
    if (!json_is_array(events))
        return 0;
    size_t questions = agent_past_questions(events);
    for (size_t i = 0; i < questions && i < 8; i++) {
        as_question(events, i, /* replays= */ true);
        as_question(events, i, /* replays= */ false);
    }
    for (int form = 0; form < EXPORT_FORM_COUNT; form++)
        as_document(events, (enum export_form)form);
    return 0;
}
