/* libcurl, loaded only for a model on the network: linked in, it would slow down every command's
 * start. Runs in the task's process.
 * 1. Certificates are always verified, redirects never followed, proxies those of the environment,
 *    and nothing is printed.
 * 2. Every wait has an end: connecting, the first byte, silence, the deadline, a cancel.
 * 3. Headers and body are capped. */
#include "llm/http.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/buf.h"
#include "base/own.h"
#include "llm/file.h"
#include "llm/llm_int.h"

#define LIBRARY "libcurl.so.4"
#define ROOTS_MAX ((size_t)8 << 20)
#define HEADERS_MAX ((size_t)256 << 10)
#define SETTLED_IDLE_MS 1000 /* for a server that does not close after its answer */
#define TURN_MS 1000

struct calls {
    typeof(&curl_global_init) global_init;
    typeof(&curl_easy_init) easy_init;
    typeof(&curl_easy_cleanup) easy_cleanup;
    typeof(&curl_easy_reset) easy_reset;
    typeof(&curl_easy_setopt) easy_setopt;
    typeof(&curl_easy_strerror) easy_strerror;
    typeof(&curl_multi_init) multi_init;
    typeof(&curl_multi_cleanup) multi_cleanup;
    typeof(&curl_multi_add_handle) multi_add_handle;
    typeof(&curl_multi_remove_handle) multi_remove_handle;
    typeof(&curl_multi_perform) multi_perform;
    typeof(&curl_multi_poll) multi_poll;
    typeof(&curl_multi_info_read) multi_info_read;
    typeof(&curl_slist_append) slist_append;
    typeof(&curl_slist_free_all) slist_free_all;
    typeof(&curl_getdate) getdate;
};

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
    { "curl_global_init", offsetof(struct calls, global_init) },
    { "curl_easy_init", offsetof(struct calls, easy_init) },
    { "curl_easy_cleanup", offsetof(struct calls, easy_cleanup) },
    { "curl_easy_reset", offsetof(struct calls, easy_reset) },
    { "curl_easy_setopt", offsetof(struct calls, easy_setopt) },
    { "curl_easy_strerror", offsetof(struct calls, easy_strerror) },
    { "curl_multi_init", offsetof(struct calls, multi_init) },
    { "curl_multi_cleanup", offsetof(struct calls, multi_cleanup) },
    { "curl_multi_add_handle", offsetof(struct calls, multi_add_handle) },
    { "curl_multi_remove_handle", offsetof(struct calls, multi_remove_handle) },
    { "curl_multi_perform", offsetof(struct calls, multi_perform) },
    { "curl_multi_poll", offsetof(struct calls, multi_poll) },
    { "curl_multi_info_read", offsetof(struct calls, multi_info_read) },
    { "curl_slist_append", offsetof(struct calls, slist_append) },
    { "curl_slist_free_all", offsetof(struct calls, slist_free_all) },
    { "curl_getdate", offsetof(struct calls, getdate) },
};

struct llm_http {
    void *library;
    struct calls curl;
    CURL *easy;
    CURLM *multi;
    struct buf roots; /* trusted certificates of SSL_CERT_FILE; none: the system's */
};

struct exchange {
    struct llm_http *http;
    struct llm_http_call *call;
    size_t header_bytes;
    int64_t heard_ms; /* time of the last byte, or the start */
    enum llm_outcome stopped; /* LLM_OK: not stopped */
    char said[CURL_ERROR_SIZE];
};

/* ---- the library ---- */

/* Now, as the caller: later the file may be unreadable. */
static int read_roots(struct llm_http *http, struct err *err)
{
    const char *path = getenv("SSL_CERT_FILE");
    http->roots = BUF_INIT(ROOTS_MAX);
    if (!path || !*path)
        return 0;
    own_fd fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(err, "open the certificates '%.200s' of SSL_CERT_FILE", path);
    return llm_file_read(fd, path, &http->roots, err);
}

/* Takes `http`. */
static int start(struct llm_http *http, struct llm_http **out, struct err *err)
{
    http->multi = http->curl.multi_init();
    http->easy = http->curl.easy_init();
    if (!http->multi || !http->easy) {
        llm_http_close(http);
        return err_set(err, ERR_HOST, "start '" LIBRARY "'");
    }
    *out = http;
    return 0;
}

int llm_http_open(struct llm_http **out, struct err *err)
{
    struct llm_http *http = buf_alloc_zero(1, sizeof *http);
    bool whole = true;
    http->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; http->library && i < array_len(symbols); i++) {
        void *found = dlsym(http->library, symbols[i].name);
        whole = whole && found;
        memcpy((char *)&http->curl + symbols[i].offset, &found, sizeof found);
    }
    if (!http->library || !whole) {
        llm_http_close(http);
        err_set(err, ERR_HOST, "load '" LIBRARY "', which reaches models over the network");
        err_hint(err, "install libcurl (Debian: apt-get install libcurl4)");
        return -1;
    }
    if (read_roots(http, err) < 0) {
        llm_http_close(http);
        return -1;
    }
    http->curl.global_init(CURL_GLOBAL_DEFAULT); /* a process opens models before it has threads */
    return start(http, out, err);
}

int llm_http_again(const struct llm_http *http, struct llm_http **out, struct err *err)
{
    struct llm_http *other = buf_alloc_zero(1, sizeof *other);
    other->library = http->library;
    other->curl = http->curl;
    other->roots = BUF_INIT(ROOTS_MAX);
    buf_add_str(&other->roots, buf_str(&http->roots));
    return start(other, out, err);
}

/* The library stays loaded: it has global state, and may be needed again. */
void llm_http_close(struct llm_http *http)
{
    if (!http)
        return;
    if (http->easy)
        http->curl.easy_cleanup(http->easy);
    if (http->multi)
        http->curl.multi_cleanup(http->multi);
    buf_done(&http->roots);
    free(http);
}

/* ---- what comes ---- */

/* Seconds, possibly with a fraction; or a date. */
static double read_wait(const struct exchange *exchange, const char *text)
{
    char *end = NULL;
    double seconds = strtod(text, &end);
    if (end != text && *end == 0)
        return seconds >= 0 && seconds < 1e6 ? seconds : -1;
    time_t at = exchange->http->curl.getdate(text, NULL);
    double left = difftime(at, time(NULL));
    return at < 0 ? -1 : left < 0 ? 0 : left;
}

static void read_header(struct exchange *exchange, struct str name, struct str value)
{
    struct llm_http_call *call = exchange->call;
    char text[96];
    llm_copy(text, sizeof text, value);
#define IS(text) (name.len == sizeof(text) - 1 && strncasecmp(name.at, text, name.len) == 0)
    if (IS("request-id") || IS("x-request-id"))
        llm_copy(call->id, sizeof call->id, value);
    else if (IS("x-should-retry"))
        call->never_retry = str_is(value, "false");
    else if (IS("retry-after-ms"))
        call->retry_after_s = read_wait(exchange, text) / 1000;
    else if (IS("retry-after") && call->retry_after_s < 0)
        call->retry_after_s = read_wait(exchange, text);
#undef IS
}

/* A proxy's answer or an interim one may come first: the last one counts. */
static void read_status(struct llm_http_call *call, struct str line)
{
    const char *space = memchr(line.at, ' ', line.len);
    uint64_t status = 0;
    if (space && line.len >= (size_t)(space - line.at) + 4)
        str_to_u64((struct str){ space + 1, 3 }, &status);
    call->status = (int)status;
    call->retry_after_s = -1;
    call->never_retry = false;
    call->id[0] = 0;
}

static size_t on_header(char *bytes, size_t one, size_t len, void *user)
{
    struct exchange *exchange = user;
    struct str line = str_trim((struct str){ bytes, len * one });
    const char *colon = line.len > 0 ? memchr(line.at, ':', line.len) : NULL;
    exchange->header_bytes += len;
    if (exchange->header_bytes > HEADERS_MAX) {
        exchange->stopped = LLM_TOO_LONG;
        return 0;
    }
    if (line.len > 5 && memcmp(line.at, "HTTP/", 5) == 0)
        read_status(exchange->call, line);
    else if (colon)
        read_header(exchange, (struct str){ line.at, (size_t)(colon - line.at) },
                    str_trim((struct str){ colon + 1,
                                          line.len - (size_t)(colon - line.at) - 1 }));
    return len * one;
}

static size_t on_body(char *bytes, size_t one, size_t len, void *user)
{
    struct exchange *exchange = user;
    struct llm_http_call *call = exchange->call;
    exchange->heard_ms = llm_now_ms();
    call->bytes += len * one;
    if (call->bytes > call->max_bytes) {
        exchange->stopped = LLM_TOO_LONG;
        return 0;
    }
    int rc = call->on_bytes(call->user, (struct str){ bytes, len * one });
    call->settled = call->settled || rc > 0;
    return rc < 0 ? 0 : len * one;
}

/* ---- one exchange ---- */

static struct curl_slist *prepare(struct exchange *exchange)
{
    struct llm_http *http = exchange->http;
    const struct llm_http_call *call = exchange->call;
    struct curl_blob roots = { .data = http->roots.at, .len = http->roots.len };
    struct curl_slist *headers = NULL;
    for (size_t i = 0; i < LLM_HTTP_HEADERS_MAX && call->headers[i]; i++)
        headers = http->curl.slist_append(headers, call->headers[i]);
    headers = http->curl.slist_append(headers, "accept-encoding: identity");
    headers = http->curl.slist_append(headers, "expect:");
    http->curl.easy_reset(http->easy);
#define SET(option, value) http->curl.easy_setopt(http->easy, option, value)
    SET(CURLOPT_URL, call->url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    if (roots.len > 0)
        SET(CURLOPT_CAINFO_BLOB, &roots);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)call->connect_ms);
    SET(CURLOPT_USERAGENT, "cupel/" CUPEL_VERSION);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_ERRORBUFFER, exchange->said);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, exchange);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, exchange);
    if (call->body.at) {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        SET(CURLOPT_POSTFIELDS, call->body.at);
    }
#undef SET
    return headers;
}

static int64_t wait_end_ms(const struct exchange *exchange)
{
    const struct llm_http_call *call = exchange->call;
    int64_t limit = call->settled     ? SETTLED_IDLE_MS
                    : call->bytes > 0 ? call->idle_ms
                                      : call->first_byte_ms;
    int64_t end = exchange->heard_ms + limit;
    return call->deadline_ms > 0 && call->deadline_ms < end ? call->deadline_ms : end;
}

/* Runs until done: libcurl's verdict, or `stopped` has the reason. */
static CURLcode turn(struct exchange *exchange)
{
    struct llm_http *http = exchange->http;
    int cancel = exchange->call->cancel_fd;
    for (;;) {
        int running = 0, left = 0;
        struct curl_waitfd extra = { .fd = cancel, .events = CURL_WAIT_POLLIN };
        http->curl.multi_perform(http->multi, &running);
        CURLMsg *message = http->curl.multi_info_read(http->multi, &left);
        if (message && message->msg == CURLMSG_DONE)
            return message->data.result;
        int64_t wait = wait_end_ms(exchange) - llm_now_ms();
        if (wait <= 0 || exchange->stopped != LLM_OK) {
            exchange->stopped = exchange->stopped == LLM_OK ? LLM_TIMEOUT : exchange->stopped;
            return CURLE_OK;
        }
        http->curl.multi_poll(http->multi, &extra, cancel >= 0 ? 1 : 0,
                              wait < TURN_MS ? (int)wait : TURN_MS, NULL);
        if (cancel >= 0 && extra.revents)
            exchange->stopped = LLM_CANCELLED;
    }
}

static bool is_hopeless(CURLcode code)
{
    return code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_URL_MALFORMAT ||
           code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_SSL_CACERT_BADFILE;
}

enum llm_outcome llm_http_do(struct llm_http *http, struct llm_http_call *call)
{
    struct exchange exchange = { .http = http, .call = call, .heard_ms = llm_now_ms() };
    call->retry_after_s = -1;
    struct curl_slist *headers = prepare(&exchange);
    http->curl.multi_add_handle(http->multi, http->easy);
    CURLcode code = turn(&exchange);
    http->curl.multi_remove_handle(http->multi, http->easy);
    /* The headers hold a key: nothing keeps them. */
    http->curl.easy_reset(http->easy);
    http->curl.slist_free_all(headers);
    if (exchange.stopped == LLM_CANCELLED)
        return LLM_CANCELLED;
    if (call->settled || (code == CURLE_OK && exchange.stopped == LLM_OK))
        return LLM_OK;
    if (exchange.stopped != LLM_OK)
        return exchange.stopped;
    if (code == CURLE_WRITE_ERROR)
        return LLM_OK; /* the reader stopped, and knows why */
    call->never_retry = is_hopeless(code);
    llm_copy(call->detail, sizeof call->detail,
             str_of(exchange.said[0] ? exchange.said : http->curl.easy_strerror(code)));
    return call->bytes > 0 ? LLM_BROKEN : LLM_NETWORK;
}
