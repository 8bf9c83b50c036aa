/* For the tests of wires: replies from bytes, requests as JSON. In all texts ' stands for ". */
#ifndef TESTS_UNIT_TEST_LLM_WIRE_H
#define TESTS_UNIT_TEST_LLM_WIRE_H

#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "net/sse.h"
#include "llm/wire.h"

#define own_reply attr_cleanup(llm_reply_done) struct llm_reply

static inline char *llm_quoted(const char *text)
{
    char *copy = buf_strdup(str_of(text));
    for (char *at = copy; *at; at++)
        *at = *at == '\'' ? '"' : *at;
    return copy;
}

static inline json_t *llm_json(const char *text)
{
    struct err err = ERR_INIT;
    own_str quoted = llm_quoted(text);
    json_t *value = json_read(str_of(quoted), SIZE_MAX, &err);
    if (!value)
        check_failed(__FILE__, __LINE__, "%s: %s", text, err.text);
    return value;
}

static inline void llm_check_same(int line, const json_t *got, const char *want)
{
    own_json wanted = llm_json(want);
    own_str shown = json_write(got, JSON_COMPACT);
    if (!json_equal(got, wanted))
        check_failed(__FILE__, line, "%s, not %s", shown, want);
}
#define CHECK_SAME(got, want) llm_check_same(__LINE__, got, want)

static inline void llm_feed(void *user, struct str name, struct str data)
{
    (void)name;
    llm_reader_event(user, data);
}

/* What the watcher heard is added to `heard`, if given. */
static inline void llm_hear(void *user, struct str text)
{
    if (user)
        buf_add_str(user, text);
}

/* A reply from events, one JSON each in `text`, separated by line feeds; or from one JSON. */
static inline struct llm_reply llm_reply_of(const struct llm_wire *wire, const char *text,
                                            bool whole, struct buf *heard)
{
    struct llm_watch watch = { .on_text = llm_hear, .cancel_fd = -1, .user = heard };
    struct llm_reply reply = { .outcome = LLM_OK };
    struct llm_reader reader;
    unsigned made_ids = 0;
    own_str quoted = llm_quoted(text);
    llm_reader_start(&reader, wire, &watch, &reply, &made_ids);
    if (whole)
        llm_reader_whole(&reader, str_of(quoted));
    for (char *at = quoted; !whole && *at; at += strcspn(at, "\n"), at += *at == '\n')
        llm_reader_event(&reader, (struct str){ at, strcspn(at, "\n") });
    llm_reader_end(&reader);
    llm_reader_done(&reader);
    return reply;
}

/* The JSON of a request with these messages. */
static inline json_t *llm_request_of(const struct llm_wire *wire, const char *messages,
                                     const char *tools, struct llm_dialect dialect)
{
    own_json said = llm_json(messages);
    own_json given = tools ? llm_json(tools) : NULL;
    struct llm_request request = { .instructions = "Be brief.", .messages = said, .tools = given };
    return wire->encode(&dialect, &request);
}

#define LLM_TOOLS "[{'name':'python','description':'runs it','schema':{'type':'object'}}]"
#define LLM_USER "{'role':'user','content':[{'type':'text','text':'What?'}]}"
#define LLM_CALL "{'type':'tool_call','id':'c1','name':'python','arguments':{'code':'1'}}"
#define LLM_RESULT                                                          \
    "{'type':'tool_result','id':'c1','is_error':false,'content':"           \
    "[{'type':'text','text':'2'},{'type':'image','mime':'image/png','base64':'aW1n'}]}"

#endif
