/* Files as resources: those of a session come from the engine, those of a single run from the
 * results that are kept, those of a task from the door. Runs in the process of a door, in its
 * loop. */
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "contract/result.h"
#include "mcp/answer.h"
#include "mcp/mcp_int.h"
#include "mcp/uri.h"

#define LIST_MAX 200

static void add_life(const struct mcp_call *call, json_t *result)
{
    if (call->era != MCP_MODERN)
        return;
    json_object_set_new(result, "ttlMs", json_integer(0));
    json_object_set_new(result, "cacheScope", json_string("private"));
}

/* --- lists --- */

static void add_run(json_t *list, const struct mcp_run *run)
{
    const char *record = json_string_value(json_object_get(run->of.answer, "run"));
    const char *owner = run->session[0] ? run->session : run->told || !record ? run->id : record;
    json_t *artifact;
    size_t i;
    json_array_foreach (json_object_get(run->of.answer, "artifacts"), i, artifact) {
        struct str path = json_get_str(artifact, "path");
        own_str uri = mcp_uri_make(owner, path);
        if (json_array_size(list) >= LIST_MAX)
            return;
        json_array_append_new(
            list, json_pack("{s:s, s:o, s:o, s:I}", "uri", uri, "name", json_text(path), "mimeType",
                            json_text(json_get_str(artifact, "mime")), "size",
                            json_integer_value(json_object_get(artifact, "size_bytes"))));
    }
}

static bool is_listed(const json_t *list, size_t count, const char *uri)
{
    for (size_t i = 0; i < count; i++)
        if (str_is(json_get_str(json_array_get(list, i), "uri"), uri))
            return true;
    return false;
}

/* The latest one of a name counts: a later cell has changed the file. */
static void drop_twins(json_t *list)
{
    for (size_t i = json_array_size(list); i-- > 0;)
        if (is_listed(list, i, json_get_str(json_array_get(list, i), "uri").at))
            json_array_remove(list, i);
}

void mcp_resources_list(struct mcp_call *call)
{
    json_t *list = json_array();
    for (const struct mcp_run *run = call->mcp->runs; run; run = run->next)
        if (!run->session[0] || mcp_session_may(call, run->session))
            add_run(list, run);
    drop_twins(list);
    json_t *result = json_pack("{s:o}", "resources", list);
    add_life(call, result);
    mcp_call_result(call, result);
}

void mcp_resources_templates(struct mcp_call *call)
{
    json_t *result = json_pack(
        "{s:[{s:s, s:s, s:s}]}", "resourceTemplates", "uriTemplate", "cupel://{owner}/{+path}",
        "name", "file", "description",
        "A file of a session, of a single run or of a task (owner: its id).");
    add_life(call, result);
    mcp_call_result(call, result);
}

/* --- read --- */

static void refuse(struct mcp_call *call, const char *uri, const char *why)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    mcp_fault_set(&fault, call->era == MCP_MODERN ? MCP_E_PARAMS : MCP_E_RESOURCE, 200, "%s", why);
    fault.data = json_pack("{s:o}", "uri", json_text(str_of(uri)));
    mcp_call_fault(call, &fault);
}

static const char *uri_of(const struct mcp_call *call)
{
    return json_string_value(json_object_get(call->params, "uri"));
}

static void answer_bytes(struct mcp_call *call, struct str bytes, const char *mime)
{
    const char *uri = uri_of(call);
    bool plain = str_is_utf8(bytes) && (bytes.len == 0 || !memchr(bytes.at, 0, bytes.len));
    json_t *one = json_pack("{s:s, s:s}", "uri", uri, "mimeType", mime);
    json_object_set_new(one, plain ? "text" : "blob",
                        plain ? json_text(bytes) : base64_json(bytes));
    json_t *result = json_pack("{s:[o]}", "contents", one);
    add_life(call, result);
    mcp_call_result(call, result);
}

static void have_file(struct mcp_call *call)
{
    const json_t *file = json_object_get(call->of.answer, "file");
    const json_int_t size = json_integer_value(json_object_get(file, "size_bytes"));
    if (call->of.err.kind != ERR_NONE) {
        const struct err err = call->of.err;
        refuse(call, uri_of(call), err.text);
        return;
    }
    struct str bytes = call->of.artifact_count ? buf_str(&call->of.artifacts[0].content) : STR("");
    own_str mime = buf_strdup(json_get_str(file, "mime"));
    if (size > MCP_RESOURCE_BYTES || (json_int_t)bytes.len != size)
        refuse(call, uri_of(call),
               "the file is longer than 8388608 bytes: read_file reads it in parts");
    else
        answer_bytes(call, bytes, mime);
}

static void read_of_session(struct mcp_call *call, const char *owner, const char *path)
{
    struct err err = ERR_INIT;
    json_t *frame = json_pack("{s:s, s:s, s:s, s:s, s:i, s:i}", "op", "session", "do", "get",
                              "session", owner, "path", path, "offset", 0, "length",
                              MCP_RESOURCE_BYTES);
    if (!mcp_session_may(call, owner)) {
        json_decref(frame);
        refuse(call, uri_of(call), "there is no such resource");
    } else if (mcp_call_ask(call, frame, have_file, &err) < 0) {
        refuse(call, uri_of(call), err.text);
    }
}

/* The index of a picture that a run showed, by its path. */
static bool is_picture(const char *path, uint64_t *out_index)
{
    return strncmp(path, &MCP_SHOWN[1], sizeof MCP_SHOWN - 2) == 0 &&
           str_to_u64(str_of(path + sizeof MCP_SHOWN - 2), out_index);
}

static bool answer_picture(struct mcp_call *call, const json_t *result, const char *path)
{
    uint64_t index = 0;
    const char *mime = NULL;
    if (!is_picture(path, &index))
        return false;
    const json_t *results = json_object_get(result, "results");
    struct str base64 = mcp_picture_of(json_array_get(results, (size_t)index), &mime);
    if (!mime)
        return false;
    json_t *all = json_pack("{s:[{s:s, s:s, s:o}]}", "contents", "uri", uri_of(call), "mimeType",
                            mime, "blob", json_stringn(base64.at, base64.len));
    add_life(call, all);
    mcp_call_result(call, all);
    return true;
}

/* Of a run that is stored: the uri says once more which file. */
static void have_stored(struct mcp_call *call, const struct mcp_found *found)
{
    char owner[MCP_OWNER_ROOM];
    own_str path = NULL;
    const json_t *made = json_object_get(found->record, "result");
    if (found->err)
        refuse(call, uri_of(call), found->err->text);
    else if (mcp_uri_read(uri_of(call), owner, &path) < 0)
        refuse(call, uri_of(call), "there is no such resource");
    else if (!found->record)
        answer_bytes(call, found->bytes, result_mime(str_of(path)));
    else if (!answer_picture(call, made, path))
        refuse(call, uri_of(call), "there is no such resource");
}

static void read_of_task(struct mcp_call *call, const char *id, const char *path)
{
    const struct mcp_agent *agent = call->mcp->options.agent;
    struct str bytes = agent->file(call->mcp->options.agent_user, id, path);
    if (!bytes.at)
        refuse(call, uri_of(call), "there is no such resource");
    else if (bytes.len > MCP_RESOURCE_BYTES)
        refuse(call, uri_of(call), "the file is longer than 8388608 bytes");
    else
        answer_bytes(call, bytes, result_mime(str_of(path)));
}

static void read_of_run(struct mcp_call *call, const char *owner, const char *path)
{
    uint64_t index;
    const struct mcp_run *run = mcp_run_find(call->mcp, str_of(owner));
    for (size_t i = 0; run && i < run->of.artifact_count; i++) {
        const struct embed_artifact *one = &run->of.artifacts[i];
        struct str name = { one->path, one->path_len };
        if (!str_is(name, path))
            continue;
        if (one->content.len > MCP_RESOURCE_BYTES)
            refuse(call, uri_of(call), "the file is longer than 8388608 bytes");
        else
            answer_bytes(call, buf_str(&one->content), result_mime(name));
        return;
    }
    if (!run && mcp_stored_may_be(call->mcp, str_of(owner)))
        mcp_stored_find(call, owner, is_picture(path, &index) ? NULL : path, have_stored);
    else if (!run || !answer_picture(call, run->of.answer, path))
        refuse(call, uri_of(call), "there is no such resource");
}

void mcp_resources_read(struct mcp_call *call)
{
    char owner[MCP_OWNER_ROOM];
    own_str path = NULL;
    const char *uri = uri_of(call);
    if (!uri || mcp_uri_read(uri, owner, &path) < 0)
        refuse(call, uri ? uri : "", "there is no such resource");
    else if (strlen(owner) == REQUEST_SESSION_LEN && strncmp(owner, "s_", 2) == 0)
        read_of_session(call, owner, path);
    else if (mcp_task_find(call->mcp, str_of(owner)))
        read_of_task(call, owner, path);
    else
        read_of_run(call, owner, path);
}
