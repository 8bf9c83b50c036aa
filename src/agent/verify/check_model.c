/* The verifier's call and its verdict. Process: the task's.
 * The verifier sees the question, the answer, the evidence and the names of the files, each marked
 * as data with a tag that they cannot know; of the conversation it sees nothing. Its word can only
 * speak against an answer: without a verdict nothing changes. */
#include <stdlib.h>
#include <sys/random.h>

#include "agent/verify/check_scan.h"
#include "agent/verify/verify.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

#define EVIDENCE_MAX (24u << 10) /* bytes of outputs that the verifier is shown */
#define CELL_MAX (6u << 10)
#define TEXT_MAX (16u << 10) /* of question and answer, each */
#define REPLY_TOKENS 1000

__asm__(".section .rodata\n.balign 16\nagent_prompt_verifier:\n"
        ".incbin \"prompts/verifier.txt\"\n.byte 0\n.previous\n");
extern const char agent_prompt_verifier[];

/* Head and tail of a long text, with the count of what is left out. */
static void add_cut(struct buf *out, struct str text, size_t most)
{
    if (text.len <= most) {
        buf_add_str(out, text);
        return;
    }
    size_t head = str_cut_utf8(text, most * 2 / 3), tail = text.len - most / 3;
    while (tail < text.len && ((unsigned char)text.at[tail] & 0xc0) == 0x80)
        tail++;
    buf_add(out, text.at, head);
    buf_printf(out, "\n[%zu bytes left out]\n", tail - head);
    buf_add(out, text.at + tail, text.len - tail);
}

static void add_section(struct buf *out, const char *tag, const char *name, struct str text,
                        size_t most)
{
    buf_printf(out, "%s:\n<data tag=%s>\n", name, tag);
    add_cut(out, text, most);
    buf_printf(out, "\n</data tag=%s>\n\n", tag);
}

/* Code and output of the kept cells; the later ones matter most, and fill the room first. */
static void add_evidence(struct buf *out, const json_t *steps)
{
    size_t from = agent_steps_from(steps), room = EVIDENCE_MAX, first = json_array_size(steps);
    while (first > from) {
        const json_t *step = json_array_get(steps, first - 1);
        const char *seen = json_string_value(json_object_get(step, "observation"));
        size_t need = strlen(seen ? seen : "") + json_string_length(json_object_get(step, "code"));
        need = need > CELL_MAX ? CELL_MAX : need;
        if (need > room)
            break;
        room -= need;
        first--;
    }
    if (first > from)
        buf_printf(out, "[%zu earlier cells left out]\n", first - from);
    for (size_t i = first; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        if (!agent_step_is_kept(step))
            continue;
        const json_t *seen = json_object_get(step, "observation");
        buf_printf(out, "[cell %lld]\n", (long long)json_integer_value(json_object_get(step, "n")));
        add_cut(out, json_str(json_object_get(step, "code")), CELL_MAX / 2);
        buf_add_text(out, "\n[output]\n");
        add_cut(out,
                json_is_string(seen) ? json_str(seen)
                                     : json_str(json_object_get(json_object_get(step, "result"),
                                                                "stdout")),
                CELL_MAX / 2);
        buf_add_text(out, "\n");
    }
}

static void add_files(struct buf *out, const json_t *artifacts)
{
    size_t i;
    json_t *made;
    json_array_foreach (artifacts, i, made)
        buf_printf(out, "%.300s, %lld bytes, %.100s\n",
                   json_string_value(json_object_get(made, "path")) ?: "",
                   (long long)json_integer_value(json_object_get(made, "size_bytes")),
                   json_string_value(json_object_get(made, "mime")) ?: "");
}

char *agent_verifier_text(const struct agent_claim *claim, const char *tag)
{
    own_buf out = BUF_INIT(256u << 10), shown = BUF_INIT(128u << 10), files = BUF_INIT(32u << 10);
    add_evidence(&shown, claim->steps);
    add_files(&files, claim->artifacts);
    add_section(&out, tag, "The question", str_of(claim->question), TEXT_MAX);
    add_section(&out, tag, "The answer", str_of(claim->answer), TEXT_MAX);
    add_section(&out, tag, "The evidence: what the cells were and showed", buf_str(&shown),
                2 * EVIDENCE_MAX);
    add_section(&out, tag, "Files that were made", buf_str(&files), CELL_MAX);
    buf_add_text(&out, "Your verdict:");
    return buf_take(&out);
}

static void add_verdict(const struct llm_reply *reply, json_t *checks)
{
    struct str reason = STR("");
    own_buf detail = BUF_INIT(2048), repair = BUF_INIT(4096);
    if (reply->outcome != LLM_OK) {
        buf_printf(&detail, "the verifier gave no verdict: %s%s%.300s",
                   llm_outcome_name(reply->outcome), reply->detail[0] ? ": " : "", reply->detail);
        agent_checks_add(checks, "verifier", "no_verdict", detail.at, NULL);
        return;
    }
    int verdict = agent_verdict_read(reply->text ? reply->text : "", &reason);
    int shown = (int)str_cut_utf8(reason, 1000);
    if (verdict < 0) {
        agent_checks_add(checks, "verifier", "no_verdict",
                         "the verifier's first line is neither PASS nor FAIL: reason", NULL);
    } else if (verdict > 0) {
        agent_checks_add(checks, "verifier", "pass", "the verifier found nothing against it", NULL);
    } else {
        buf_printf(&detail, "%.*s", shown, reason.at);
        buf_printf(&repair,
                   "A reviewer who saw the question, the answer and the evidence says: %.*s. "
                   "If that is right, mend it; if not, make the answer show why.",
                   shown, reason.at);
        agent_checks_add(checks, "verifier", "fail", buf_str(&detail).at, repair.at);
    }
}

void agent_check_model(const struct agent_claim *claim, struct llm_model *verifier,
                       const struct llm_watch *watch, int64_t deadline_ms, struct llm_reply *out,
                       json_t *checks)
{
    uint64_t random = 0;
    char tag[24];
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        random = (uint64_t)(uintptr_t)&random;
    snprintf(tag, sizeof tag, "%016llx", (unsigned long long)random);
    own_str text = agent_verifier_text(claim, tag);
    own_json messages = json_pack("[{s:s, s:[{s:s, s:o}]}]", "role", "user", "content", "type",
                                  "text", "text", json_text(str_of(text)));
    const struct llm_request request = { .instructions = agent_prompt_verifier,
                                         .messages = messages,
                                         .max_output_tokens = REPLY_TOKENS,
                                         .deadline_ms = deadline_ms };
    llm_ask(verifier, &request, watch, out);
    add_verdict(out, checks);
}

int agent_verdict_read(const char *text, struct str *out_reason)
{
    *out_reason = STR("");
    struct str line = { text, strcspn(text, "\r\n") };
    while (line.len && (line.at[line.len - 1] == ' ' || line.at[line.len - 1] == '\t'))
        line.len--;
    if (str_is(line, "PASS"))
        return 1;
    if (line.len < 5 || memcmp(line.at, "FAIL:", 5) != 0)
        return -1;
    struct str reason = agent_scan_trim((struct str){ line.at + 5, line.len - 5 });
    if (!reason.len)
        return -1;
    *out_reason = reason;
    return 0;
}
