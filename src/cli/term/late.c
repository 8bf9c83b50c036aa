/* Shows what a cell wrote after its end. Runs in the cli process; the text comes from the box. */
#include "cli/term/late.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/term/visible.h"

size_t cli_late_add(const json_t *entry, struct buf *out)
{
    const json_t *cell = json_object_get(entry, "cell");
    struct str text = json_get_str(entry, "text"), coded = json_get_str(entry, "base64");
    json_int_t all = json_integer_value(json_object_get(entry, "bytes"));
    size_t len = 0;
    own_str exact = coded.len && !text.len ? base64_decode(coded, &len) : NULL;
    if (exact)
        text = (struct str){ exact, len };
    if (json_is_integer(cell))
        buf_printf(out, "cupel: cell %lld wrote after its end:\n",
                   (long long)json_integer_value(cell));
    else
        buf_add_text(out, "cupel: earlier cells wrote after their ends:\n");
    cli_visible_text(text, out);
    if (text.len == 0 || text.at[text.len - 1] != '\n')
        buf_add_text(out, "\n");
    if (all > (json_int_t)text.len)
        buf_printf(out, "cupel: ... %lld bytes in all\n", (long long)all);
    return text.len;
}
