/* Tells a person how to use the server. Runs in the serve process, after the drop of rights. */
#include "cli/serve/serve_notes.h"

#include <unistd.h>

#include "base/buf.h"
#include "base/json.h"
#include "cli/term/term.h"
#include "contract/limits.h"

json_t *cli_serve_missing(struct engine *engine, const char *profile, struct err *err)
{
    struct request_ceilings ceilings = { .host_memory_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) *
                                                              sysconf(_SC_PAGESIZE) };
    own_json root = json_pack("{s:s, s:s, s:s}", "language", "bash", "code", ":", "profile",
                              profile);
    own_request request = REQUEST_INIT;
    struct result result;
    result_init(&result);
    if (request_from_json(root, &ceilings, &request, err) < 0 ||
        engine_run(engine, &request, /* on_event= */ NULL, /* user= */ NULL, /* interrupt_fd= */ -1,
                   &result, err) < 0)
        return NULL;
    json_t *missing = json_incref(result.missing);
    result_done(&result);
    return missing;
}

static void add_names(struct buf *out, const json_t *names)
{
    size_t i;
    json_t *name;
    json_array_foreach ((json_t *)(uintptr_t)names, i, name)
        buf_printf(out, "%s%s", i ? ", " : "", json_string_value(name));
}

static void note_walls(const char *profile, const json_t *missing, const struct err *why)
{
    own_buf names = BUF_INIT(1024);
    add_names(&names, missing);
    if (!missing)
        cli_term_note("profile '%s' could not be tried: %s", profile, why->text);
    else if (names.len == 0)
        cli_term_note("profile '%s' is fully enforced: every wall stands", profile);
    else
        cli_term_note("profile '%s' is not fully enforced, missing here: %s; 'cupel doctor' has "
                      "the fixes",
                      profile, names.at);
}

void cli_serve_notes(const char *socket, const json_t *urls, const char *profile,
                     const json_t *missing, const struct err *why)
{
    size_t i;
    json_t *url;
    cli_term_note("ready on %s", socket);
    if (json_array_size(urls) == 0)
        return;
    json_array_foreach ((json_t *)(uintptr_t)urls, i, url)
        cli_term_note("ready on %s", json_string_value(url));
    cli_term_note("a token for a client: export CUPEL_TOKEN=$(cupel token new NAME)");
    cli_term_note("a first request: curl %s/v1/run -H \"Authorization: Bearer $CUPEL_TOKEN\" "
                  "--json '{\"code\":\"print(6*7)\"}'",
                  json_string_value(json_array_get(urls, 0)));
    note_walls(profile, missing, why);
}
