/* build/redact: redacts what it reads, for the tests. One JSON object a line: {"text": "..."},
 * {"base64": "..."}, {"json": VALUE} or {"dumped": "JSON as text"}; one line of the same form comes
 * back, with "count" and "may". Arguments: patterns, as of the configuration. */
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "store/redact/redact.h"

static const unsigned char key[REDACT_KEY_BYTES] = "the key of a store in the tests";

static json_t *of_text(const struct redact *redact, struct str text, const char *member)
{
    own_buf out = BUF_INIT((size_t)1 << 30);
    bool may = redact_may(redact, text);
    size_t count = redact_text(redact, text, &out);
    json_t *answer = json_pack("{s:I, s:b}", "count", (json_int_t)count, "may", may);
    json_object_set_new(answer, member,
                        *member == 'b' ? base64_json(buf_str(&out)) : json_text(buf_str(&out)));
    return answer;
}

static json_t *answer_to(const struct redact *redact, const json_t *asked)
{
    json_t *value;
    size_t len;
    if (json_is_string(json_object_get(asked, "text")))
        return of_text(redact, json_get_str(asked, "text"), "text");
    if (json_is_string(json_object_get(asked, "base64"))) {
        own_str bytes = base64_decode(json_get_str(asked, "base64"), &len);
        return bytes ? of_text(redact, (struct str){ bytes, len }, "base64") : NULL;
    }
    if ((value = json_object_get(asked, "json"))) {
        size_t count = redact_json(redact, value);
        return json_pack("{s:I, s:O}", "count", (json_int_t)count, "json", value);
    }
    own_buf out = BUF_INIT((size_t)1 << 30);
    struct str text = json_get_str(asked, "dumped");
    size_t count = redact_json_text(redact, text, &out);
    return json_pack("{s:I, s:b, s:o}", "count", (json_int_t)count, "may",
                     redact_json_may(redact, text), "dumped", json_text(buf_str(&out)));
}

int main(int argc, char **argv)
{
    struct err err = ERR_INIT;
    own_redact redact = redact_open(argc > 1 ? (const char *const *)(argv + 1) : NULL, key, &err);
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    if (!redact) {
        printf("{\"error\": \"%s\"}\n", err_kind_name(err.kind));
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    while ((len = getline(&line, &room, stdin)) > 0) {
        own_json asked = json_read((struct str){ line, (size_t)len }, (size_t)1 << 28, &err);
        own_json answer = asked ? answer_to(redact, asked) : NULL;
        own_str text = answer ? json_write(answer, JSON_COMPACT) : NULL;
        puts(text ? text : "null");
    }
    free(line);
    return 0;
}
