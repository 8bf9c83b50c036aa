/* HTTP through libcurl, against a server of the test's own that says one thing and leaves, or
 * falls silent. */
#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "llm/http.h"

#define LONG_MS 60000

struct server {
    pid_t pid;
    char url[64];
};

static void stopped(struct server *server)
{
    if (server->pid > 0) {
        kill(server->pid, SIGKILL);
        waitpid(server->pid, NULL, 0);
    }
    server->pid = 0;
}
#define own_server attr_cleanup(stopped) struct server

/* The head of a request, as far as it came. */
static void read_head(int fd, char *head, size_t room)
{
    size_t len = 0;
    head[0] = 0;
    while (len + 1 < room && !strstr(head, "\r\n\r\n")) {
        ssize_t n = read(fd, head + len, room - 1 - len);
        if (n <= 0)
            return;
        len += (size_t)n;
        head[len] = 0;
    }
}

/* Every connection gets `answer`; where it holds %s, that is the head of the request. */
static void serve(int listener, const char *answer, bool then_silent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nothing */
    for (;;) {
        own_fd fd = accept(listener, NULL, NULL);
        char head[4096];
        own_buf text = BUF_INIT(1 << 20);
        const char *mark = strstr(answer, "%s");
        read_head(fd, head, sizeof head);
        buf_add(&text, answer, mark ? (size_t)(mark - answer) : strlen(answer));
        buf_add_text(&text, mark ? head : "");
        if (io_write_all(fd, text.at ? text.at : "", text.len) < 0 || then_silent)
            pause();
    }
}

static struct server started(const char *answer, bool then_silent)
{
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof at;
    own_fd listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 8) == 0 &&
          getsockname(listener, (struct sockaddr *)&at, &len) == 0);
    struct server server = { .pid = fork() };
    if (server.pid == 0)
        serve(listener, answer, then_silent);
    snprintf(server.url, sizeof server.url, "http://127.0.0.1:%d/v1", ntohs(at.sin_port));
    return server;
}

static int keep(void *user, struct str bytes)
{
    buf_add_str(user, bytes);
    return strstr(buf_str(user).at, "enough") ? 1 : 0;
}

static struct llm_http_call call_of(const struct server *server, struct buf *body)
{
    return (struct llm_http_call){ .url = server->url,
                                   .cancel_fd = -1,
                                   .connect_ms = LONG_MS,
                                   .first_byte_ms = LONG_MS,
                                   .idle_ms = LONG_MS,
                                   .max_bytes = 1 << 16,
                                   .on_bytes = keep,
                                   .user = body };
}

static struct net_http *opened(void)
{
    struct err err = ERR_INIT;
    struct net_http *http = NULL;
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    if (net_http_open(&http, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s", err.text);
    return http;
}

static void closed(struct net_http **http)
{
    net_http_close(*http);
}
#define own_http attr_cleanup(closed) struct net_http *

TEST(llm_http_brings_the_body_and_what_matters_of_the_head)
{
    own_server server = started("HTTP/1.1 429 No\r\nRequest-Id: req_7\r\nretry-after: 3\r\n"
                                "Retry-After-Ms: 1500\r\nx-should-retry: false\r\n"
                                "content-length: 5\r\nconnection: close\r\n\r\nhello",
                                false);
    own_http http = opened();
    own_buf body = BUF_INIT(1 << 16);
    struct llm_http_call call = call_of(&server, &body);
    CHECK_INT(llm_http_do(http, &call), LLM_OK);
    CHECK_INT(call.status, 429);
    CHECK_TEXT(call.id, "req_7");
    CHECK(call.retry_after_s > 1.4 && call.retry_after_s < 1.6 && call.never_retry);
    CHECK_TEXT(buf_str(&body).at, "hello");
}

TEST(llm_http_waits_may_be_dates)
{
    own_server server = started("HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n"
                                "retry-after: Wed, 21 Oct 2015 07:28:00 GMT\r\n\r\n",
                                false);
    own_http http = opened();
    own_buf body = BUF_INIT(1 << 16);
    struct llm_http_call call = call_of(&server, &body);
    CHECK_INT(llm_http_do(http, &call), LLM_OK);
    CHECK(call.retry_after_s == 0);
}

TEST(llm_http_sends_what_it_is_given)
{
    own_server server = started("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n%s", false);
    own_http http = opened();
    own_buf body = BUF_INIT(1 << 16);
    struct llm_http_call call = call_of(&server, &body);
    call.headers[0] = "x-api-key: k";
    call.body = STR("{}");
    CHECK_INT(llm_http_do(http, &call), LLM_OK);
    static const char *const wanted[] = { "POST /v1 ", "x-api-key: k\r\n", "User-Agent: cupel/",
                                          "accept-encoding: identity\r\n",
                                          "Content-Length: 2\r\n" };
    for (size_t i = 0; i < array_len(wanted); i++)
        if (!strstr(buf_str(&body).at, wanted[i]))
            check_failed(__FILE__, __LINE__, "no '%s' in %s", wanted[i], buf_str(&body).at);
}

TEST(llm_http_does_not_follow)
{
    own_server server = started("HTTP/1.1 307 Away\r\nlocation: http://127.0.0.1:9/\r\n"
                                "content-length: 0\r\nconnection: close\r\n\r\n",
                                false);
    own_http http = opened();
    own_buf body = BUF_INIT(1 << 16);
    struct llm_http_call call = call_of(&server, &body);
    CHECK_INT(llm_http_do(http, &call), LLM_OK);
    CHECK_INT(call.status, 307);
}

TEST(llm_http_losses)
{
    static const struct {
        const char *answer;
        bool then_silent;
        enum llm_outcome outcome;
    } rows[] = {
        { "", false, LLM_NETWORK },
        { "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", false, LLM_BROKEN },
        { "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf", true, LLM_TIMEOUT },
        { "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", true, LLM_TIMEOUT },
        { "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nthat is enough", true, LLM_OK },
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        own_server server = started(rows[i].answer, rows[i].then_silent);
        own_http http = opened();
        own_buf body = BUF_INIT(1 << 16);
        struct llm_http_call call = call_of(&server, &body);
        if (rows[i].outcome == LLM_TIMEOUT)
            *(strstr(rows[i].answer, "half") ? &call.idle_ms : &call.first_byte_ms) = 300;
        CHECK_INT(llm_http_do(http, &call), rows[i].outcome);
    }
}

TEST(llm_http_nobody_there)
{
    own_server server = started("", false);
    stopped(&server);
    own_http http = opened();
    own_buf body = BUF_INIT(1 << 16);
    struct llm_http_call call = call_of(&server, &body);
    CHECK_INT(llm_http_do(http, &call), LLM_NETWORK);
    CHECK(call.detail[0]);
}

TEST(llm_http_keeps_the_deadline_and_hears_a_cancel)
{
    own_server server = started("HTTP/1.1 200 OK\r\n\r\nsome", true);
    own_http http = opened();
    own_buf body = BUF_INIT(1 << 16);
    struct llm_http_call late = call_of(&server, &body);
    late.deadline_ms = clock_now_ns() / 1000000 + 300;
    CHECK_INT(llm_http_do(http, &late), LLM_TIMEOUT);
    own_server again = started("HTTP/1.1 200 OK\r\n\r\nsome", true);
    own_fd timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    struct itimerspec soon = { .it_value = { .tv_nsec = 200000000 } };
    CHECK(timerfd_settime(timer, 0, &soon, NULL) == 0);
    struct llm_http_call cancelled = call_of(&again, &body);
    cancelled.cancel_fd = timer;
    CHECK_INT(llm_http_do(http, &cancelled), LLM_CANCELLED);
}

TEST(llm_http_is_capped)
{
    own_buf answer = BUF_INIT(1 << 20);
    buf_add_text(&answer, "HTTP/1.1 200 OK\r\n\r\n");
    for (int i = 0; i < 2000; i++)
        buf_add_text(&answer, "sixty-four bytes of a reply that goes on and on, without an end\n");
    own_server server = started(buf_str(&answer).at, true);
    own_http http = opened();
    own_buf body = BUF_INIT(1 << 20);
    struct llm_http_call call = call_of(&server, &body);
    CHECK_INT(llm_http_do(http, &call), LLM_TOO_LONG);
    CHECK(body.len <= call.max_bytes);
}
