/* What the three fuzz targets of wires share: a reply is read from the bytes, as a stream or
 * as one JSON, and what was understood is written back as the next request. */
#ifndef TESTS_FUZZ_FUZZ_LLM_WIRE_H
#define TESTS_FUZZ_FUZZ_LLM_WIRE_H

#include <stdint.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/own.h"
#include "net/sse.h"
#include "llm/wire.h"

static inline void fuzz_llm_event(void *user, struct str name, struct str data)
{
    (void)name;
    llm_reader_event(user, data);
}

/* The next request must be JSON that holds every call. */
static inline void fuzz_llm_answer(const struct llm_wire *wire, const struct llm_reply *reply)
{
    own_json results = json_array();
    own_json messages = json_array();
    size_t i;
    json_t *part;
    json_array_foreach (reply->content, i, part)
        if (llm_part_is(part, "tool_call"))
            json_array_append_new(results,
                                  json_pack("{s:s,s:O,s:[{s:s,s:s}]}", "type", "tool_result", "id",
                                            json_object_get(part, "id"), "content", "type", "text",
                                            "text", "2"));
    json_array_append_new(messages,
                          json_pack("{s:s,s:O}", "role", "assistant", "content", reply->content));
    json_array_append_new(messages, json_pack("{s:s,s:O}", "role", "user", "content", results));
    struct llm_dialect dialect = { .model = "m", .seals = true };
    struct llm_request request = { .instructions = "Be brief.", .messages = messages };
    own_json body = wire->encode(&dialect, &request);
    own_str text = body ? json_write(body, JSON_COMPACT) : NULL;
    own_json again = text ? json_loads(text, JSON_ALLOW_NUL, NULL) : NULL;
    if (!json_is_object(again))
        abort();
}

static inline int fuzz_llm_wire(const struct llm_wire *wire, const uint8_t *bytes, size_t len)
{
    struct llm_watch watch = { .cancel_fd = -1 };
    struct llm_reply reply = { .outcome = LLM_OK };
    struct str text = { (const char *)bytes, len };
    struct llm_reader reader;
    struct net_sse sse;
    unsigned made_ids = 0;
    llm_reader_start(&reader, wire, &watch, &reply, &made_ids);
    net_sse_start(&sse, fuzz_llm_event, &reader);
    if (len > 0 && bytes[0] == '{')
        llm_reader_whole(&reader, text);
    else
        net_sse_feed(&sse, text);
    llm_reader_end(&reader);
    if (reply.outcome == LLM_OK ? !json_is_array(reply.content) || !reply.text
                                : reply.content || reply.text || !reply.detail[0])
        abort();
    if (reply.outcome == LLM_OK)
        fuzz_llm_answer(wire, &reply);
    net_sse_done(&sse);
    llm_reader_done(&reader);
    llm_reply_done(&reply);
    return 0;
}

#endif
