/* Fuzz the checks of an answer: question, answer, code, output and a file, all from outside. Parts
 * are divided by a byte 0xff; whatever they hold, each check ends in one of its outcomes. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "agent/verify/script.h"
#include "agent/verify/verify.h"
#include "base/buf.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { QUESTION, ANSWER, CODE, OUTPUT, CONTENT, PATH, PARTS };

static struct str content_of(void *user, const char *path)
{
    (void)path;
    return *(struct str *)user;
}

static void expect_outcomes(const json_t *checks)
{
    static const char *const known[] = { "pass", "fail", "skip", "no_verdict" };
    size_t i;
    json_t *check;
    json_array_foreach (checks, i, check) {
        const char *outcome = json_string_value(json_object_get(check, "outcome"));
        bool found = false;
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            found = found || (outcome && !strcmp(outcome, known[k]));
        bool repair = json_is_string(json_object_get(check, "repair"));
        if (!found || !json_is_string(json_object_get(check, "detail")) ||
            repair != !strcmp(outcome, "fail"))
            abort();
    }
}

static void run(const char *const *text, struct str content)
{
    own_json steps = json_pack("[{s:i, s:o, s:s, s:s, s:{s:o, s:[{s:o, s:o}]}}]", "n", 1, "code",
                               json_text(str_of(text[CODE])), "status", "ok", "state", "kept",
                               "result", "stdout", json_text(str_of(text[OUTPUT])), "results",
                               "text/plain", json_text(str_of(text[OUTPUT])), "text/html",
                               json_text(str_of(text[CONTENT])));
    own_json artifacts = json_pack("[{s:o, s:i}]", "path", json_text(str_of(text[PATH])),
                                   "size_bytes", (int)content.len);
    own_json rules = agent_checklist_of(text[QUESTION]);
    struct err err = ERR_INIT;
    own_json from_model = json_read(content, 1u << 20, &err);
    own_json model = agent_checklist_read(from_model);
    own_json checks = json_array();
    struct agent_claim claim = { .question = text[QUESTION], .answer = text[ANSWER],
                                 .requirements = rules, .steps = steps, .artifacts = artifacts,
                                 .content = content_of, .user = &content };
    agent_check_list(&claim, checks);
    claim.requirements = model;
    agent_check_list(&claim, checks);
    agent_check_numbers(&claim, checks);
    expect_outcomes(checks);
    agent_checks_prove(checks);
    free(agent_checks_repair(checks));
    free(agent_script(steps));
    free(agent_script_proof(steps, model, "tag"));
    free(agent_verifier_text(&claim, "tag"));
    own_buf why = BUF_INIT(4096);
    agent_fold_same(str_of(text[OUTPUT]), str_of(text[ANSWER]), "2026-11-15", &why);
    struct str reason;
    agent_verdict_read(text[ANSWER], &reason);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text[PARTS];
    char *parts[PARTS] = { 0 };
    struct str content = STR_NONE;
    size_t at = 0;
    for (size_t p = 0; p < PARTS; p++) {
        const uint8_t *end = at < size ? memchr(data + at, 0xff, size - at) : NULL;
        size_t len = at >= size ? 0 : end ? (size_t)(end - (data + at)) : size - at;
        struct str raw = { len ? (const char *)data + at : "", len };
        /* Texts arrive as JSON strings do: valid UTF-8. A file's bytes are anything. */
        own_json clean = json_text(raw);
        parts[p] = buf_strdup(str_of(json_string_value(clean)));
        text[p] = parts[p];
        content = p == CONTENT ? raw : content;
        at += len + 1;
    }
    run(text, content);
    for (size_t p = 0; p < PARTS; p++)
        free(parts[p]);
    return 0;
}
