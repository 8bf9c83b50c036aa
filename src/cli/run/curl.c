/* Writes a request as a curl command. Runs in the cli process. The body is JSON in ASCII, so that
 * no shell, terminal or locale changes a byte of it. */
#include "cli/run/curl.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/own.h"
#include "cli/link/about.h"
#include "cli/link/remote.h"
#include "contract/config.h"

/* The kernel takes no argument above 128 KiB; a longer body comes from a here-document. */
#define ARGUMENT_MAX ((size_t)96 << 10)
#define END "CUPEL_END"

char *cli_curl_address(void)
{
    struct cli_about about;
    struct err ignored = ERR_INIT;
    own_buf address = BUF_INIT(4096);
    if (cli_about_read(NULL, &about, &ignored) < 0)
        about = CLI_ABOUT_INIT;
    struct str named = json_str(json_array_get(json_object_get(about.info, "listen"), 0));
    if (named.len > 0)
        buf_add_str(&address, named);
    else
        buf_printf(&address, "http://127.0.0.1:%d", CONFIG_PORT);
    cli_about_done(&about);
    return buf_take(&address);
}

void cli_curl_quote(struct str text, struct buf *out)
{
    buf_add_text(out, "'");
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\'')
            buf_add_text(out, "'\\''");
        else
            buf_add(out, &text.at[i], 1);
    }
    buf_add_text(out, "'");
}

/* The body of POST /v1/run; NULL: JSON cannot carry it. */
static json_t *body_of(const struct request *request, struct err *err)
{
    own_json body = cli_remote_request(request);
    if (json_array_size(json_object_get(body, "files")) != request->file_count) {
        err_input(err, "files", NULL, "UTF-8 text", "the name of a file is not UTF-8");
        err_hint(err, "give it another name in the box: -f FILE:NAME");
        return NULL;
    }
    if (request->stdin_text.len > 0 && !json_object_get(body, "stdin")) {
        json_t *text = json_stringn(request->stdin_text.at, request->stdin_text.len);
        if (!text) {
            err_input(err, "stdin", NULL, "UTF-8 text", "standard input is not UTF-8");
            err_hint(err, "give the bytes as a file: -f FILE");
            return NULL;
        }
        json_object_set_new(body, "stdin", text);
    }
    return take_ptr(body);
}

int cli_curl_write(const char *address, const struct request *request, struct buf *out,
                   struct err *err)
{
    own_json body = body_of(request, err);
    own_str text = body ? json_write(body, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    if (!text)
        return body ? err_set(err, ERR_BUG, "write the request as JSON") : -1;
    bool brief = strlen(text) <= ARGUMENT_MAX;
    own_buf url = BUF_INIT(8192);
    buf_printf(&url, "%s/v1/run", address);
    buf_add_text(out, "curl -sS ");
    cli_curl_quote(buf_str(&url), out);
    buf_add_text(out, " -H \"Authorization: Bearer $CUPEL_TOKEN\" \\\n"
                      "    -H 'Content-Type: application/json' --data-binary ");
    if (brief)
        cli_curl_quote(str_of(text), out);
    else
        buf_printf(out, "@- <<'" END "'\n%s\n" END, text);
    return buf_add_text(out, "\n") < 0 ? err_set(err, ERR_LIMIT, "the request is too long") : 0;
}
