/* A run's result as a model reads it: a short text, pictures, links to files, and the members of
 * run_code's output schema. Pure. */
#ifndef MCP_ANSWER_H
#define MCP_ANSWER_H

#include <jansson.h>
#include <stdbool.h>

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

/* The picture at an index of results: its base64 text, and its type in *out_mime; none. */
struct str mcp_picture_of(const json_t *forms, const char **out_mime);
/* May a model get it? Judges the size, and a PNG's measures by its head. */
bool mcp_picture_is_sane(struct str base64, const char *mime);

#endif
