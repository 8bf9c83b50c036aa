/* Any bytes as text and as JSON to redact, without and with patterns of the configuration.
 * 1. Where nothing is found, the text stays byte for byte; where the quick look says no, nothing is
 *    found.
 * 2. A result fits twelve times the length of its text.
 * 3. JSON stays JSON, UTF-8 stays UTF-8. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/own.h"
#include "store/redact/redact.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void as_text(const struct redact *redact, struct str text)
{
    own_buf out = BUF_INIT(text.len * 12 + 200);
    size_t count = redact_text(redact, text, &out);
    if (!count && !str_eq(text, buf_str(&out)))
        abort();
    if (count && !redact_may(redact, text))
        abort();
    if (str_is_utf8(text) && !str_is_utf8(buf_str(&out)))
        abort();
}

static void as_json(const struct redact *redact, struct str text)
{
    struct err err = ERR_INIT;
    own_buf out = BUF_INIT(text.len * 12 + 200);
    own_json value = json_read(text, text.len, &err);
    size_t count = redact_json_text(redact, text, &out);
    if (!count && !str_eq(text, buf_str(&out)))
        abort();
    own_json after = value && count ? json_read(buf_str(&out), out.len, &err) : NULL;
    if (value && count && !after)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    static const unsigned char key[REDACT_KEY_BYTES] = "fuzz";
    static const char *const extra[] = { "acme-[0-9]+", "(x+)+y", "\\Bq.", "[^ -~]z", NULL };
    static struct redact *plain, *more;
    struct err err = ERR_INIT;
    struct str text = { (const char *)bytes, len };
    if (!plain) {
        plain = redact_open(NULL, key, &err);
        more = redact_open(extra, key, &err);
        if (!plain || !more)
            abort();
    }
    as_text(plain, text);
    as_text(more, text);
    as_json(plain, text);
    as_json(more, text);
    return 0;
}
