/* Runs from the store: the door looks for them, in another thread. Runs in the process of a door,
 * in its loop. A record is untrusted as a result is: answer.c makes and bounds the answer. */
#include <string.h>

#include "mcp/answer.h"
#include "mcp/mcp_int.h"

#define ID_LEN 26 /* "r_" and 24 digits */

bool mcp_stored_may_be(const struct mcp *mcp, struct str id)
{
    return mcp->options.find && id.len == ID_LEN && strncmp(id.at, "r_", 2) == 0 &&
           strspn(id.at + 2, "0123456789abcdef") == ID_LEN - 2;
}

void mcp_stored_find(struct mcp_call *call, const char *id, const char *path,
                     void (*found)(struct mcp_call *call, const struct mcp_found *found))
{
    struct mcp *mcp = call->mcp;
    call->ticket = ++mcp->last_ticket;
    call->found = found;
    mcp->options.find(mcp->options.user, call->ticket, id, path);
}

void mcp_found(struct mcp *mcp, uint64_t ticket, const json_t *record, struct str bytes,
               const struct err *err)
{
    const struct mcp_found found = { record, bytes, err };
    struct mcp_call *call = mcp->calls;
    while (call && call->ticket != ticket)
        call = call->next;
    if (!call)
        return;
    call->ticket = 0;
    call->found(call, &found);
}

/* A run that was refused after its start has an error for its result. */
static void refuse(struct mcp_call *call, const json_t *record)
{
    const json_t *error = json_object_get(record, "error");
    struct str kind = json_get_str(error, "kind"), text = json_get_str(error, "message");
    struct err err = ERR_INIT;
    if (text.len > 0) {
        err_set(&err, err_kind_find(kind.at), "%.*s", (int)(text.len < 200 ? text.len : 200),
                text.at);
    } else {
        err_set(&err, ERR_CONFLICT, "this run has no result");
        err_hint(&err, "it goes on, begun by another client, or its engine ended before it");
    }
    mcp_call_refuse(call, &err);
}

static void show(struct mcp_call *call, const struct mcp_found *found)
{
    const json_t *result = json_object_get(found->record, "result");
    struct mcp_answer answer;
    if (found->err) {
        mcp_call_refuse(call, found->err);
    } else if (!json_is_object(result)) {
        refuse(call, found->record);
    } else {
        /* Its files are those of the record: a session has changed them, or is gone. */
        mcp_answer_make(result, json_get_str(found->record, "run").at, /* session= */ NULL,
                        "from the records", &answer);
        mcp_call_answer(call, answer.content, answer.structured, answer.is_error);
    }
}

void mcp_stored_show(struct mcp_call *call, const char *id)
{
    mcp_stored_find(call, id, /* path= */ NULL, show);
}
