/* Results of MCP servers as outcomes of calls. Runs in the tool host; pure. */
#include <stdio.h>

#include "base/base64.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"
#include "tool/define/outcome.h"
#include "tool/host/http_answer.h"
#include "tool/host/mcp_map.h"
#include "tool/host/mcp_wire.h"

struct gathering {
    struct buf text;
    json_t *files;
    bool full; /* a text or a file was left out */
};

static void add_text(struct gathering *gathering, struct str text)
{
    if (gathering->text.len > 0)
        buf_add_text(&gathering->text, "\n");
    gathering->full = buf_add_str(&gathering->text, text) < 0 || gathering->full;
}

/* Base64 is decoded and written again: it has one spelling, and is what it says. */
static void add_file(struct gathering *gathering, const char *stem, struct str mime,
                     struct str data)
{
    char name[64];
    size_t count = json_array_size(gathering->files), len = 0;
    own_str bytes = base64_decode(data, &len);
    if (!bytes || count == OUTCOME_FILES_MAX) {
        gathering->full = true;
        return;
    }
    snprintf(name, sizeof name, "%s_%zu", stem, count + 1);
    json_array_append_new(gathering->files, http_file(name, mime, (struct str){ bytes, len }));
}

static void add_resource(struct gathering *gathering, const json_t *resource)
{
    if (json_is_string(json_object_get(resource, "blob")))
        add_file(gathering, "resource", json_get_str(resource, "mimeType"),
                 json_get_str(resource, "blob"));
    else
        add_text(gathering, json_get_str(resource, "text"));
}

static void add_link(struct gathering *gathering, const json_t *link)
{
    own_buf line = BUF_INIT(8192);
    struct str uri = json_get_str(link, "uri"), name = json_get_str(link, "name");
    if (buf_add_str(&line, name) == 0 && buf_add_text(&line, ": ") == 0 &&
        buf_add_str(&line, uri) == 0)
        add_text(gathering, buf_str(&line));
}

static void add_block(struct gathering *gathering, const json_t *block)
{
    struct str type = json_get_str(block, "type"), mime = json_get_str(block, "mimeType");
    if (str_is(type, "text"))
        add_text(gathering, json_get_str(block, "text"));
    else if (str_is(type, "image") || str_is(type, "audio"))
        add_file(gathering, str_is(type, "image") ? "image" : "audio", mime,
                 json_get_str(block, "data"));
    else if (str_is(type, "resource"))
        add_resource(gathering, json_object_get(block, "resource"));
    else if (str_is(type, "resource_link"))
        add_link(gathering, block);
}

static void gather(struct gathering *gathering, const json_t *list,
                   void (*add)(struct gathering *gathering, const json_t *member))
{
    *gathering = (struct gathering){ .text = BUF_INIT(MCP_MESSAGE_MAX), .files = json_array() };
    for (size_t i = 0; i < json_array_size(list); i++)
        add(gathering, json_array_get(list, i));
}

/* Takes the value. */
static json_t *finish(struct gathering *gathering, json_t *value)
{
    bool none = json_array_size(gathering->files) == 0;
    json_t *outcome;
    if (gathering->full) {
        json_decref(value);
        outcome = outcome_error(OUTCOME_ERROR,
                                "the result has more than %d files, or bytes that "
                                "are not base64",
                                OUTCOME_FILES_MAX);
    } else
        outcome = outcome_value_files(value, none ? NULL : json_incref(gathering->files));
    json_decref(gathering->files);
    buf_done(&gathering->text);
    return outcome;
}

json_t *mcp_outcome(const json_t *result)
{
    struct gathering gathering;
    const json_t *structured = json_object_get(result, "structuredContent");
    gather(&gathering, json_object_get(result, "content"), add_block);
    if (json_is_true(json_object_get(result, "isError"))) {
        json_t *outcome = outcome_error(OUTCOME_ERROR, "%s",
                                        gathering.text.len ? gathering.text.at
                                                           : "the tool failed and said nothing");
        json_decref(gathering.files);
        buf_done(&gathering.text);
        return outcome;
    }
    return finish(&gathering,
                  structured ? json_deep_copy(structured) : json_text(buf_str(&gathering.text)));
}

json_t *mcp_outcome_read(const json_t *result)
{
    struct gathering gathering;
    gather(&gathering, json_object_get(result, "contents"), add_resource);
    return finish(&gathering, json_text(buf_str(&gathering.text)));
}

json_t *mcp_outcome_list(const json_t *result)
{
    static const char *const fields[] = { "uri", "name", "title", "description", "mimeType",
                                          "size" };
    json_t *list = json_array(), *value;
    const json_t *resources = json_object_get(result, "resources");
    for (size_t i = 0; i < json_array_size(resources); i++) {
        json_t *entry = json_object();
        for (size_t k = 0; k < array_len(fields); k++)
            if ((value = json_object_get(json_array_get(resources, i), fields[k])))
                json_object_set(entry, fields[k], value);
        json_array_append_new(list, entry);
    }
    return outcome_value(list);
}
