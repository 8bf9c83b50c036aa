/* What boxes report of an answer: the call of answer(), the rerun, and the trace. The bytes are a
 * JSON list [result, trace, result of the rerun]; whatever they hold, each check ends in one of its
 * outcomes, and the judge's text has as many marks as it needs. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/verify/verify.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

#define TAG "0123456789ab"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect_outcomes(const json_t *checks)
{
    static const char *const known[] = { "pass", "fail", "no_verdict" };
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        struct str outcome = json_get_str(check, "outcome");
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || str_is(outcome, known[k]);
        if (!found || !json_is_string(json_object_get(check, "detail")))
            abort();
    }
    own_str repair = agent_checks_repair(checks);
    if ((repair != NULL) != agent_checks_have(checks, NULL, "fail"))
        abort();
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;
    while ((text = strstr(text, part))) {
        text += strlen(part);
        found++;
    }
    return found;
}

static void judge(const struct agent_claim *claim, const json_t *trace)
{
    own_str text = agent_judge_text(claim, trace, "", TAG);
    struct str reason;
    if (!text || count(text, "<data tag=" TAG ">") != 4 || count(text, "</data tag=" TAG ">") != 4)
        abort();
    agent_verdict_read(json_get_str(trace, "text").at, &reason);
}

static void prove(json_t *payload, const json_t *trace, const json_t *again)
{
    own_json checks = json_array();
    const struct agent_claim claim = { .question = "", .payload = payload,
                                       .artifacts = json_object_get(again, "artifacts") };
    own_buf differs = BUF_INIT(8192);
    if (!agent_value_same(payload, payload, 0))
        abort();
    agent_payload_differs(payload, payload, 0, &differs);
    if (differs.len)
        abort();
    own_json passed = agent_rerun_read(&claim, again, 1, checks);
    if ((passed != NULL) != agent_checks_have(checks, "rerun", "pass"))
        abort();
    if (agent_trace_read(trace, payload, true, checks))
        judge(&claim, trace);
    else if (!agent_checks_have(checks, "values", "no_verdict"))
        abort();
    expect_outcomes(checks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err unheard = ERR_INIT;
    own_json all = json_read((struct str){ (const char *)data, size }, 1u << 20, &unheard);
    json_t *payload = agent_payload_of(json_array_get(all, 0));
    if (agent_payload_is(payload, "answer"))
        prove(payload, json_array_get(all, 1), json_array_get(all, 2));
    else if (payload)
        agent_payload_opened(payload, "a.csv");
    return 0;
}
