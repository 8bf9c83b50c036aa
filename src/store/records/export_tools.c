/* Tools in an export: a stand-in for the module `tools`, which gives each call its recorded
 * outcome. Any process; pure. Recorded texts are JSON in a string of ASCII, never code. */
#include <string.h>

#include "base/builtin.h"
#include "base/json.h"
#include "base/own.h"
#include "store/records/export_int.h"
#include "store/records/look.h"

BUILTIN(builtin_records_standin, "src/store/records/standin.py");

static const json_t *calls_of(const json_t *entry)
{
    const json_t *calls = json_object_get(entry, LOOK_CALLS);
    return json_is_object(calls) ? calls : NULL;
}

static bool had_tools(const json_t *entry)
{
    return calls_of(entry) || json_object_get(json_object_get(entry, "result"), "calls");
}

bool records_export_has_tools(const json_t *record, const json_t *before)
{
    size_t i;
    json_t *entry;
    json_array_foreach (before, i, entry)
        if (had_tools(entry))
            return true;
    return had_tools(record);
}

static int add_source(const json_t *entry, struct buf *out)
{
    own_str inner = json_write(calls_of(entry), JSON_COMPACT | JSON_ENSURE_ASCII);
    own_json wrapped = inner ? json_string(inner) : NULL;
    own_str quoted = wrapped ? json_write(wrapped, JSON_ENCODE_ANY) : NULL;
    return quoted ? buf_printf(out, "    %s,\n", quoted) : -1;
}

bool records_export_stands_in(const json_t *record, const json_t *before)
{
    size_t i;
    json_t *entry;
    json_array_foreach (before, i, entry)
        if (had_tools(entry) && !json_is_true(json_object_get(calls_of(entry), "whole")))
            return false;
    return strcmp(records_export_language_of(record)->name, "python") == 0 &&
           records_export_has_tools(record, before) &&
           (!had_tools(record) || json_is_true(json_object_get(calls_of(record), "whole")));
}

int records_export_tools(const json_t *record, const json_t *before, struct buf *out)
{
    size_t i;
    json_t *entry;
    int failed = buf_add(out, builtin_records_standin,
                         (size_t)(builtin_records_standin_end - builtin_records_standin));
    failed |= buf_add_text(out, "\n\n_recorded_tools([\n");
    json_array_foreach (before, i, entry)
        if (calls_of(entry) &&
            !json_equal(json_object_get(entry, "run"), json_object_get(record, "run")))
            failed |= add_source(entry, out);
    if (calls_of(record))
        failed |= add_source(record, out);
    return failed | buf_add_text(out, "])\n");
}
