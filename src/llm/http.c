/* Requests to models: the exchange itself is src/net's; this adds the headers that models' servers
 * use. Runs in the task's process. Proxies are those of the environment. */
#include "llm/http.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/attr.h"
#include "llm/llm_int.h"
#include "net/http.h"

static enum llm_outcome outcome_of(enum net_outcome outcome)
{
    static const enum llm_outcome outcomes[] = {
        [NET_OK] = LLM_OK,           [NET_REFUSED] = LLM_NETWORK,
        [NET_UNREACHED] = LLM_NETWORK, [NET_BROKEN] = LLM_BROKEN,
        [NET_TIMEOUT] = LLM_TIMEOUT, [NET_CANCELLED] = LLM_CANCELLED,
        [NET_TOO_LONG] = LLM_TOO_LONG,
    };
    return outcomes[outcome];
}

/* Seconds, possibly with a fraction; or a date. */
static double read_wait(const char *text)
{
    char *end = NULL;
    double seconds = strtod(text, &end);
    if (end != text && *end == 0)
        return seconds >= 0 && seconds < 1e6 ? seconds : -1;
    time_t at = net_http_date(text);
    double left = difftime(at, time(NULL));
    return at < 0 ? -1 : left < 0 ? 0 : left;
}

static void on_header(void *user, struct str name, struct str value)
{
    struct llm_http_call *call = user;
    char text[96];
    if (!name.at) {
        call->retry_after_s = -1;
        call->never_retry = false;
        call->id[0] = 0;
        return;
    }
    str_plain(text, sizeof text, value);
#define IS(text) (name.len == sizeof(text) - 1 && strncasecmp(name.at, text, name.len) == 0)
    if (IS("request-id") || IS("x-request-id"))
        str_plain(call->id, sizeof call->id, value);
    else if (IS("x-should-retry"))
        call->never_retry = str_is(value, "false");
    else if (IS("retry-after-ms"))
        call->retry_after_s = read_wait(text) / 1000;
    else if (IS("retry-after") && call->retry_after_s < 0)
        call->retry_after_s = read_wait(text);
#undef IS
}

/* The reader looks at the status while bytes come. */
static int on_bytes(void *user, struct str bytes)
{
    struct llm_http_call *call = user;
    call->status = call->net.status;
    call->bytes = call->net.bytes;
    return call->on_bytes(call->user, bytes);
}

enum llm_outcome llm_http_do(struct net_http *http, struct llm_http_call *call)
{
    call->retry_after_s = -1;
    call->net = (struct net_call){ .url = call->url,
                                   .headers = call->headers,
                                   .body = call->body,
                                   .reach = NET_REACH_ALL,
                                   .deadline_ms = call->deadline_ms,
                                   .cancel_fd = call->cancel_fd,
                                   .connect_ms = call->connect_ms,
                                   .first_byte_ms = call->first_byte_ms,
                                   .idle_ms = call->idle_ms,
                                   .max_bytes = call->max_bytes,
                                   .on_header = on_header,
                                   .on_bytes = on_bytes,
                                   .user = call };
    enum net_outcome outcome = net_http_do(http, &call->net);
    call->status = call->net.status;
    call->bytes = call->net.bytes;
    call->settled = call->net.settled;
    call->never_retry = call->never_retry || call->net.hopeless;
    str_plain(call->detail, sizeof call->detail, str_of(call->net.detail));
    return outcome_of(outcome);
}
