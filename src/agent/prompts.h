/* The agent's texts (prompts/), as bytes inside cupel, filled in for a task. */
#ifndef AGENT_PROMPTS_H
#define AGENT_PROMPTS_H

#include "base/str.h"

enum agent_prompt {
    AGENT_PROMPT_SYSTEM, /* --mode code */
    AGENT_PROMPT_TOOLS,  /* --mode tools */
    AGENT_PROMPT_PLAN,   /* a planner's call */
    AGENT_PROMPT_CROSS,  /* a second derivation */
    AGENT_PROMPT_JUDGE,
    AGENT_PROMPTS
};

struct agent_prompt_word {
    const char *name, *text;
};

/* The text with each {{name}} filled in; heap, caller frees. */
char *agent_prompt_fill(enum agent_prompt prompt, const struct agent_prompt_word *words,
                        size_t count);

#endif
