/* A run's result, or a task's report, as a model reads it: a short text, pictures, links to files,
 * and the members of the tool's output schema. Pure. */
#ifndef MCP_ANSWER_H
#define MCP_ANSWER_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/str.h"

#define MCP_PICTURES_MAX 8
/* Of base64, for one picture and for all of an answer: clients refuse an event of 1 MiB. */
#define MCP_PICTURE_BYTES ((size_t)768 << 10)
#define MCP_PICTURES_BYTES ((size_t)768 << 10)
#define MCP_PICTURE_MOST_PX 2000               /* the long side, of a PNG */
#define MCP_LINKS_MAX 64
#define MCP_SHOWN "/.shown/" /* the folder of pictures in a run's resources */

struct mcp_answer {
    json_t *content, *structured;
    bool is_error;
};

/* `id` names the run in links; `session` NULL: its files are the run's own. `note` may be "". */
void mcp_answer_make(const json_t *result, const char *id, const char *session, const char *note,
                     struct mcp_answer *out);
/* The answer for a run that goes on. */
void mcp_answer_running(const char *id, const char *session, double seconds, struct str out_tail,
                        struct str err_tail, struct mcp_answer *out);

/* --- ask_answer.c: a task of the agent, by the members of the output schema of `ask` --- */
/* It has ended, with this report. Pictures are not in it. */
void mcp_ask_answer_over(const char *id, const json_t *report, struct mcp_answer *out);
/* It goes on: `phase` may be "". */
void mcp_ask_answer_running(const char *id, const char *phase, int64_t steps, double seconds,
                            struct mcp_answer *out);
/* It waits for the user. */
void mcp_ask_answer_asks(const char *id, const char *question, int64_t steps, double seconds,
                         struct mcp_answer *out);

/* --- parts of both --- */
/* A text as JSON; of a long one the head and the tail. */
json_t *mcp_cut_json(struct str text, size_t most);
/* A member that is a text, cut; else null. */
json_t *mcp_text_or_null(const json_t *object, const char *name, size_t most);
/* "TITLE:
TEXT
", cut; nothing for an empty text. */
void mcp_add_block(struct buf *out, const char *title, struct str text, size_t most);

/* The picture at an index of results: its base64 text, and its type in *out_mime; none. */
struct str mcp_picture_of(const json_t *forms, const char **out_mime);
/* May a model get it? Judges the size, and a PNG's measures by its head. */
bool mcp_picture_is_sane(struct str base64, const char *mime);

#endif
