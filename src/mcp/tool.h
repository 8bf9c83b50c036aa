/* How a tool answers its calls. The product's tools are in src/mcp; tests bring their own. */
#ifndef MCP_TOOL_H
#define MCP_TOOL_H

#include "mcp/mcp.h"

struct mcp_tool {
    const char *name;
    /* Answers now or later, exactly once, by one of the functions below. */
    void (*begin)(struct mcp_call *call);
    /* The client has cancelled the call: it still has to answer, to nobody. NULL: it will soon. */
    void (*stop)(struct mcp_call *call);
    bool needs_agent; /* it is there where options.agent is */
};
extern const struct mcp_tool mcp_tools[];
/* The text of api/mcp-tools.json. */
extern const char mcp_definitions[];

/* A further method: its answer, or NULL with a fault. */
struct mcp_extra {
    const char *method;
    json_t *(*answer)(const struct mcp_call *call, struct mcp_fault *fault);
};

const json_t *mcp_call_args(const struct mcp_call *call);
const json_t *mcp_call_params(const struct mcp_call *call);
enum mcp_era mcp_call_era(const struct mcp_call *call);
struct mcp *mcp_call_mcp(const struct mcp_call *call);
void *mcp_call_state(const struct mcp_call *call);
void mcp_call_set_state(struct mcp_call *call, void *state);
bool mcp_call_is_muted(const struct mcp_call *call); /* nobody hears the answer */

/* Sends a notification beside the answer, if the client can hear one; takes params. */
void mcp_call_say(struct mcp_call *call, const char *method, json_t *params);
/* Progress, if the client asked for it. It is left out where it does not increase. */
void mcp_call_progress(struct mcp_call *call, double progress, double total, const char *message);

/* The ends; each frees the call. */
/* A tool's answer: takes content and structured (may be NULL). */
void mcp_call_answer(struct mcp_call *call, json_t *content, json_t *structured, bool is_error);
/* An answer of one text. */
void mcp_call_text(struct mcp_call *call, bool is_error, struct str text);
/* An error that the model can act on. */
void mcp_call_refuse(struct mcp_call *call, const struct err *err);
/* Any result; takes it. */
void mcp_call_result(struct mcp_call *call, json_t *result);
/* A protocol error. */
void mcp_call_fault(struct mcp_call *call, struct mcp_fault *fault);

/* Parts of content. */
json_t *mcp_part_text(struct str text);
json_t *mcp_part_image(const char *mime, struct str base64);
json_t *mcp_part_link(const char *uri, const char *name, const char *mime, int64_t size);

#endif
