/* Any bytes as the tokens file and as the file of their use. A file that is understood is written
 * and read again as the same tokens. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "store/tokens.h"
#include "store/usage.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void as_tokens(struct str text)
{
    own_tokens tokens = TOKENS_INIT;
    own_tokens again = TOKENS_INIT;
    struct err err = ERR_INIT;
    if (tokens_parse(text, &tokens, &err) < 0) {
        if (err.kind != ERR_INPUT || !*err.text)
            abort();
        return;
    }
    own_json value = tokens_to_json(&tokens);
    own_str written = json_write(value, JSON_COMPACT);
    if (tokens_parse(str_of(written), &again, &err) < 0)
        abort();
    own_json other = tokens_to_json(&again);
    if (!json_equal(value, other))
        abort();
    for (size_t i = 0; i < tokens.count; i++)
        if (tokens_find(&tokens, tokens.at[i].name) != &tokens.at[i] ||
            tokens_find(&tokens, tokens.at[i].id) != &tokens.at[i])
            abort();
    tokens_find_secret(&tokens, text);
}

static void as_usage(struct str text)
{
    own_usage usage = USAGE_INIT;
    struct err err = ERR_INIT;
    if (usage_parse(text, &usage, &err) < 0 && err.kind != ERR_INPUT)
        abort();
    for (size_t i = 0; i < usage.count; i++)
        if (usage.at[i].cpu_ms < 0 || !tokens_is_id(str_of(usage.at[i].id)))
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct str text = { (const char *)bytes, len };
    as_tokens(text);
    as_usage(text);
    return 0;
}
