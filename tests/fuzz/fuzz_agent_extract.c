/* A model's reply: whatever it is, it is read in bounded time and what comes out is whole. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/read/extract.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/own.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_reply(const json_t *content, const char *text)
{
    struct agent_action action;
    agent_extract(content, text, &action);
    if ((action.act == AGENT_ACT_CODE) != (action.code != NULL))
        abort();
    if (action.act == AGENT_ACT_ANSWER && (!action.text || !*action.text))
        abort();
    if (action.act == AGENT_ACT_GARBLED && !action.note[0])
        abort();
    if (action.code && !*action.code)
        abort();
    if (action.kept > strlen(text) || (action.plan && !*action.plan))
        abort();
    agent_action_done(&action);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = { (const char *)data, size };
    own_str text = buf_strdup(bytes);
    struct err unheard = ERR_INIT;
    own_json content = json_read(bytes, 1u << 20, &unheard);
    read_reply(NULL, text);
    if (content)
        read_reply(content, "");
    return 0;
}
