/* Reads a model's reply: its plan, cell, or answer. Understands every grammar that models use.
 * Pure, and fuzzed: every byte is the model's. */
#ifndef AGENT_READ_EXTRACT_H
#define AGENT_READ_EXTRACT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/str.h"

enum agent_act {
    AGENT_ACT_EMPTY,   /* nothing useful */
    AGENT_ACT_CODE,    /* a cell to run */
    AGENT_ACT_ANSWER,  /* an answer that is typed, not called */
    AGENT_ACT_GARBLED, /* a call of an unknown tool or form: `note` says why */
};

struct agent_action {
    enum agent_act act;
    char *code;      /* CODE */
    char *purpose;   /* CODE, or NULL */
    char *text;      /* ANSWER: the answer; CODE: the text before the code; else NULL */
    char *plan;      /* its lines, or NULL */
    char *tool;      /* the name of a native call, or NULL */
    char *tool_id;   /* beside `tool` */
    size_t kept;     /* so many bytes of the text stay in the conversation: to the code's end */
    char note[200];  /* for the model, "" if none */
};
#define AGENT_ACTION_INIT ((struct agent_action){ .act = AGENT_ACT_EMPTY })
void agent_action_done(struct agent_action *action);

void agent_extract(const json_t *content, const char *text, struct agent_action *out);

#endif
