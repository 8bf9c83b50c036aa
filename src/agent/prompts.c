/* The prompts in cupel's read-only data. Runs in the task's process. */
#include "agent/prompts.h"

#include "base/attr.h"
#include "base/buf.h"
#include "base/builtin.h"

BUILTIN(builtin_prompt_system, "prompts/system.md");
BUILTIN(builtin_prompt_tools, "prompts/tools.md");
BUILTIN(builtin_prompt_plan, "prompts/plan.md");
BUILTIN(builtin_prompt_cross, "prompts/cross_check.md");
BUILTIN(builtin_prompt_judge, "prompts/judge.md");

#define FILLED_MAX (256u << 10)

static const struct {
    const char *from, *to;
} files[AGENT_PROMPTS] = {
    [AGENT_PROMPT_SYSTEM] = { builtin_prompt_system, builtin_prompt_system_end },
    [AGENT_PROMPT_TOOLS] = { builtin_prompt_tools, builtin_prompt_tools_end },
    [AGENT_PROMPT_PLAN] = { builtin_prompt_plan, builtin_prompt_plan_end },
    [AGENT_PROMPT_CROSS] = { builtin_prompt_cross, builtin_prompt_cross_end },
    [AGENT_PROMPT_JUDGE] = { builtin_prompt_judge, builtin_prompt_judge_end },
};

static const char *word_of(struct str name, const struct agent_prompt_word *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(name, words[i].name))
            return words[i].text;
    return "";
}

char *agent_prompt_fill(enum agent_prompt prompt, const struct agent_prompt_word *words,
                        size_t count)
{
    own_buf out = BUF_INIT(FILLED_MAX);
    struct str rest = { files[prompt].from, (size_t)(files[prompt].to - files[prompt].from) };
    while (rest.len) {
        const char *open = memmem(rest.at, rest.len, "{{", 2);
        size_t before = open ? (size_t)(open - rest.at) : rest.len;
        buf_add(&out, rest.at, before);
        rest = (struct str){ rest.at + before, rest.len - before };
        const char *close = open ? memmem(rest.at, rest.len, "}}", 2) : NULL;
        if (!close)
            break;
        size_t len = (size_t)(close - rest.at);
        buf_add_text(&out, word_of((struct str){ rest.at + 2, len - 2 }, words, count));
        rest = (struct str){ close + 2, rest.len - len - 2 };
    }
    return buf_take(&out);
}
