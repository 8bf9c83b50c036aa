/* One connection to the server: frames on its socket, or HTTP on keep-alive. Both ways cost the
 * client the same: one send, one recv, no JSON read. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "contract/result.h"
#include "load.h"

#define ANSWER_MAX (256u << 10)
#define HEAD_MAX 4096
#define ANSWER_S 60 /* an answer that takes longer does not come */

static int connect_http(const struct load *load, struct err *err)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(load->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct timeval wait = { .tv_sec = ANSWER_S };
    int on = 1;
    own_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) < 0)
        return err_sys(err, "connect to 127.0.0.1:%u", load->port);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    return take_fd(&fd);
}

int load_line_open(const struct load *load, bool http, struct load_line *out, struct err *err)
{
    int fd;
    if (http) {
        fd = connect_http(load, err);
    } else {
        struct bench_client client;
        if (bench_client_open(&load->engine, &client, err) < 0)
            return -1;
        fd = take_fd(&client.link.fd);
        bench_client_close(&client);
    }
    if (fd < 0)
        return -1;
    *out = (struct load_line){ .http = http, .fd = fd, .in = buf_alloc(ANSWER_MAX + 1) };
    return 0;
}

void load_line_close(struct load_line *line)
{
    own_close_fd(&line->fd);
    free(line->in);
    *line = LOAD_LINE_INIT;
}

int load_line_send(const struct load_line *line, const void *bytes, size_t len, struct err *err)
{
    const char *at = bytes;
    while (len > 0) {
        ssize_t n = send(line->fd, at, len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_sys(err, "write to the server");
        at += n;
        len -= (size_t)n;
    }
    return 0;
}

int load_http_head(const struct load *load, const char *method, const char *path, int64_t length,
                   const char *more, struct buf *out, struct err *err)
{
    int rc = buf_printf(out,
                        "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAuthorization: Bearer %s\r\n%s",
                        method, path, load->port, load->token, more ? more : "");
    if (rc == 0 && length >= 0)
        rc = buf_printf(out, "Content-Length: %lld\r\n", (long long)length);
    if (rc == 0)
        rc = buf_add_text(out, "\r\n");
    return rc == 0 ? 0 : err_set(err, ERR_BUG, "the head of a request is too long");
}

int load_line_ask(struct load *load, struct load_line *line, struct err *err)
{
    char body[128];
    own_buf out = BUF_INIT(HEAD_MAX);
    line->number = ++load->number;
    line->got = line->whole = 0;
    if (line->http) {
        int len = snprintf(body, sizeof body, "{\"code\":\"print(%llu)\"}",
                           (unsigned long long)line->number);
        if (load_http_head(load, "POST", "/v1/run", len, "Content-Type: application/json\r\n", &out,
                           err) < 0)
            return -1;
        buf_add(&out, body, (size_t)len);
    } else {
        snprintf(body, sizeof body, "print(%llu)", (unsigned long long)line->number);
        if (bench_frame("b", "python", body, &out, err) < 0)
            return -1;
    }
    return load_line_send(line, out.at, out.len, err);
}

/* --- the answer --- */

/* The head of an HTTP answer, where it is there: its status and its length. */
static int read_head(struct load_line *line, struct err *err)
{
    line->in[line->got] = 0;
    char *end = strstr(line->in, "\r\n\r\n"), *length;
    if (!end)
        return line->got < HEAD_MAX ? 0 : err_set(err, ERR_BUG, "an answer's head has no end");
    *end = 0;
    length = strcasestr(line->in, "\r\nContent-Length:");
    int rc = sscanf(line->in, "HTTP/1.1 %u ", &line->status);
    *end = '\r';
    if (rc != 1 || !length)
        return err_set(err, ERR_BUG, "an answer has no status or no length: %.200s", line->in);
    line->body_at = (size_t)(end - line->in) + 4;
    line->whole = line->body_at + strtoull(length + strlen("\r\nContent-Length:"), NULL, 10);
    if (line->whole > ANSWER_MAX)
        return err_set(err, ERR_BUG, "an answer of %zu bytes", line->whole);
    return 0;
}

static int fill(struct load_line *line, struct err *err)
{
    ssize_t n = recv(line->fd, line->in + line->got, ANSWER_MAX - line->got, 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return errno == EINTR ? 0 : err_set(err, ERR_BUG, "no answer within %d s", ANSWER_S);
    if (n < 0)
        return err_sys(err, "read from the server");
    if (n == 0)
        return err_set(err, ERR_BUG, "the server closed the connection");
    line->got += (size_t)n;
    if (line->http && !line->whole && read_head(line, err) < 0)
        return -1;
    if (!line->http && line->got >= FRAME_HEAD) {
        struct str text;
        struct str bytes = { line->in, line->got };
        return frame_next(bytes, ANSWER_MAX - FRAME_HEAD, &text, NULL, err);
    }
    return line->whole && line->got >= line->whole;
}

int load_http_explain(const struct load_line *line, struct err *err)
{
    return err_set(err, ERR_BUG, "an answer with status %u: %.*s", line->status,
                   (int)(line->got - line->body_at < 300 ? line->got - line->body_at : 300),
                   line->in + line->body_at);
}

int load_line_receive(struct load_line *line, struct err *err)
{
    char right[64];
    int got = fill(line, err);
    if (got <= 0)
        return got;
    int len = snprintf(right, sizeof right, "\"stdout\":\"%llu\\n\"",
                       (unsigned long long)line->number);
    bool ok = (!line->http || line->status == 200) &&
              memmem(line->in, line->got, right, (size_t)len) &&
              memmem(line->in, line->got, STR("\"status\":\"ok\"").at, 13);
    if (ok && line->http && line->got > line->whole)
        return err_set(err, ERR_BUG, "more bytes than the answer has");
    if (!ok && line->http)
        return load_http_explain(line, err);
    if (!ok)
        return err_set(err, ERR_BUG, "a wrong answer: %.*s",
                       (int)(line->got < 400 ? line->got : 400), line->in);
    return 1;
}

int load_line_run(struct load *load, struct load_line *line, double *out_ms, struct err *err)
{
    int got = 0;
    int64_t from = clock_now_ns();
    if (load_line_ask(load, line, err) < 0)
        return -1;
    while (got == 0)
        got = load_line_receive(line, err);
    *out_ms = clock_ms_between(from, clock_now_ns());
    return got < 0 ? -1 : 0;
}

int load_http_answer(struct load_line *line, struct err *err)
{
    int got = 0;
    line->got = line->whole = 0;
    while (got == 0)
        got = fill(line, err);
    return got < 0 ? -1 : 0;
}

json_t *load_http_ask(const struct load *load, struct load_line *line, const char *method,
                      const char *path, const json_t *body, unsigned status, struct err *err)
{
    own_buf text = BUF_INIT(HEAD_MAX), out = BUF_INIT(3 * HEAD_MAX);
    if (body && json_add(&text, body) < 0) {
        err_set(err, ERR_BUG, "the body of a request is too long");
        return NULL;
    }
    if (load_http_head(load, method, path, body ? (int64_t)text.len : -1,
                       body ? "Content-Type: application/json\r\n" : NULL, &out, err) < 0)
        return NULL;
    buf_add_str(&out, buf_str(&text));
    if (load_line_send(line, out.at, out.len, err) < 0 || load_http_answer(line, err) < 0)
        return NULL;
    if (line->status != status) {
        load_http_explain(line, err);
        return NULL;
    }
    return json_read((struct str){ line->in + line->body_at, line->whole - line->body_at },
                     ANSWER_MAX, err);
}
