/* Stored runs for MCP: those of the token itself, also for an operator. Runs in the serve process;
 * the threads of asks.h answer its questions. */
#include <stdio.h>
#include <stdlib.h>

#include "base/own.h"
#include "mcp/mcp.h"
#include "serve/api/records.h"

#define FILE_BYTES ((size_t)8 << 20) /* of one file */

/* All that the thread needs: the conversation may end meanwhile. */
struct search {
    struct api *api;
    struct api_mcp_place place;
    char owner[WHO_ID_ROOM];
    char id[RECORDS_ID_LEN + 1];
    char *path;     /* or NULL: the record */
    json_t *record; /* found */
};

static void search_free(void *user)
{
    struct search *search = user;
    json_decref(search->record);
    free(search->path);
    free(search);
}

static int work(struct ask *ask, struct db *db)
{
    struct search *search = ask->user;
    if (search->path)
        return look_artifact(db, db_state_dir(db), search->owner, search->id, str_of(search->path),
                             &ask->out, &ask->err);
    search->record = look_show(db, search->owner, search->id, &ask->err);
    return search->record ? 0 : -1;
}

static void told(struct ask *ask)
{
    const struct search *search = ask->user;
    const bool failed = ask->err.kind != ERR_NONE;
    api_mcp_found(search->api->mcp, &search->place, search->record, buf_str(&ask->out),
                  failed ? &ask->err : NULL);
}

void api_mcp_find(struct api *api, const char *owner, const struct api_mcp_place *place,
                  const char *run, const char *path)
{
    struct search *search = buf_alloc_zero(1, sizeof *search);
    search->api = api;
    search->place = *place;
    snprintf(search->owner, sizeof search->owner, "%s", owner);
    snprintf(search->id, sizeof search->id, "%s", run);
    search->path = path ? buf_strdup(str_of(path)) : NULL;
    asks_add_told(api, owner, ASKS_WHOLE,
                  &(struct ask){ .work = work, .told = told, .user = search,
                                 .free_user = search_free, .out = BUF_INIT(FILE_BYTES) });
}
