/* The conversations of one owner. Runs in the serve process, in its loop.
 * 1. A legacy conversation begins with `initialize` and has an id, which only its owner's requests
 *    can use; modern requests share one conversation that keeps nothing.
 * 2. An answer is JSON; it becomes a stream of events with the first notification, which a client
 *    gets only if it asked for progress and takes streams. */
#include "serve/mcp/hall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/own.h"

#define TALKS_MAX 64              /* legacy conversations */
#define TALK_IDLE_NS (3600 * CLOCK_S)
#define ID_DIGITS 32
#define NOTES_MAX ((size_t)256 << 10) /* unread bytes past which progress is left out */
#define STREAM_MAX ((size_t)1 << 30)
#define SESSION_HEADER "Mcp-Session-Id"

struct talk {
    struct talk *next;
    char id[ID_DIGITS + 1];
    struct mcp_peer *peer;
    int64_t used_ns;
};

struct mcp_hall {
    struct loop *loop;
    struct loop_source source; /* the engine's socket */
    uint32_t watched;
    struct loop_timer timer;
    struct mcp *mcp;
    struct mcp_peer *open; /* of modern requests */
    struct talk *talks;
    size_t talk_count, answers;
    int64_t used_ns;
};

/* The answer to one exchange. */
struct answer {
    struct mcp_hall *hall;
    struct http_exchange *x;
    bool modern, streams; /* it may become a stream */
    bool flows, ended;
    struct buf out;
    size_t sent;
};

/* --- the engine's side --- */

static void look(struct mcp_hall *hall)
{
    const int fd = mcp_fd(hall->mcp);
    const int64_t due = mcp_due_ns(hall->mcp);
    const uint32_t wanted = mcp_events(hall->mcp) & 4 ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (fd < 0 && hall->source.fd >= 0) {
        loop_remove(hall->loop, &hall->source);
        hall->source.fd = -1;
    }
    if (fd >= 0 && wanted != hall->watched) {
        hall->watched = wanted;
        loop_change(hall->loop, &hall->source, wanted);
    }
    loop_set_timer(hall->loop, &hall->timer, due ? due : LOOP_NEVER);
}

static void on_ready(struct loop_source *source, uint32_t events)
{
    struct mcp_hall *hall = loop_owner(source, struct mcp_hall, source);
    (void)events;
    mcp_ready(hall->mcp);
    look(hall);
}

static void on_due(struct loop_timer *timer)
{
    struct mcp_hall *hall = loop_owner(timer, struct mcp_hall, timer);
    mcp_ready(hall->mcp);
    look(hall);
}

struct mcp_hall *mcp_hall_new(struct loop *loop, const struct mcp_options *options,
                              const struct embed_link *link, struct err *err)
{
    struct mcp_hall *hall = buf_alloc_zero(1, sizeof *hall);
    hall->loop = loop;
    hall->used_ns = clock_now_ns();
    hall->watched = EPOLLIN;
    loop_due(&hall->timer, on_due);
    hall->mcp = mcp_open(options, link, err);
    if (hall->mcp) {
        hall->open = mcp_peer_new(hall->mcp, /* keeps= */ false);
        hall->source = (struct loop_source){ .fd = mcp_fd(hall->mcp),
                                             .ready = LOOP_HANDLER(on_ready) };
        if (loop_add(loop, &hall->source, EPOLLIN) == 0)
            return hall;
        err_sys(err, "watch a connection");
        mcp_close(hall->mcp);
    }
    free(hall);
    return NULL;
}

void mcp_hall_free(struct mcp_hall *hall)
{
    if (!hall)
        return;
    if (hall->source.fd >= 0)
        loop_remove(hall->loop, &hall->source);
    loop_set_timer(hall->loop, &hall->timer, LOOP_NEVER);
    mcp_close(hall->mcp); /* every sink hears its end */
    while (hall->talks) {
        struct talk *next = hall->talks->next;
        free(hall->talks);
        hall->talks = next;
    }
    free(hall);
}

bool mcp_hall_is_good(const struct mcp_hall *hall)
{
    return mcp_fd(hall->mcp) >= 0;
}

int64_t mcp_hall_used_ns(const struct mcp_hall *hall)
{
    return hall->used_ns;
}

bool mcp_hall_is_quiet(const struct mcp_hall *hall)
{
    return mcp_is_quiet(hall->mcp);
}

void mcp_hall_found(struct mcp_hall *hall, uint64_t ticket, const json_t *record, struct str bytes,
                    const struct err *err)
{
    mcp_found(hall->mcp, ticket, record, bytes, err);
    look(hall);
}

void mcp_hall_task_news(struct mcp_hall *hall, const char *id, const char *kind, const json_t *data)
{
    mcp_task_news(hall->mcp, id, kind, data);
}

void mcp_hall_task_asks(struct mcp_hall *hall, const char *id, const char *question)
{
    mcp_task_asks(hall->mcp, id, question);
    look(hall);
}

void mcp_hall_task_over(struct mcp_hall *hall, const char *id, const json_t *report)
{
    mcp_task_over(hall->mcp, id, report);
    look(hall);
}

/* --- conversations --- */

static void end_talk(struct mcp_hall *hall, struct talk *talk)
{
    struct talk **at = &hall->talks;
    while (*at != talk)
        at = &(*at)->next;
    *at = talk->next;
    hall->talk_count--;
    mcp_peer_end(talk->peer);
    free(talk);
}

static struct talk *find_talk(struct mcp_hall *hall, const char *id)
{
    struct talk *talk = hall->talks;
    while (talk && strcmp(talk->id, id) != 0)
        talk = talk->next;
    return talk;
}

/* The one that was used least lately makes room. */
static struct talk *new_talk(struct mcp_hall *hall)
{
    struct talk *oldest = hall->talks;
    for (struct talk *one = oldest; one; one = one->next)
        oldest = one->used_ns < oldest->used_ns ? one : oldest;
    if (hall->talk_count >= TALKS_MAX)
        end_talk(hall, oldest);
    struct talk *talk = buf_alloc_zero(1, sizeof *talk);
    hash_random_hex(talk->id, ID_DIGITS);
    talk->peer = mcp_peer_new(hall->mcp, /* keeps= */ true);
    talk->used_ns = clock_now_ns();
    talk->next = hall->talks;
    hall->talks = talk;
    hall->talk_count++;
    return talk;
}

bool mcp_hall_sweep(struct mcp_hall *hall, int64_t now_ns)
{
    for (struct talk *talk = hall->talks, *next; talk; talk = next) {
        next = talk->next;
        if (now_ns - talk->used_ns > TALK_IDLE_NS)
            end_talk(hall, talk);
    }
    look(hall);
    return !hall->talks && hall->answers == 0 && mcp_is_quiet(hall->mcp) &&
           now_ns - hall->used_ns > TALK_IDLE_NS;
}

/* --- answers --- */

static ssize_t pull(struct http_exchange *x, char *to, size_t room)
{
    struct answer *answer = x->state;
    const size_t left = answer->out.len - answer->sent;
    const size_t part = left < room ? left : room;
    if (left == 0)
        return answer->ended ? HTTP_END : HTTP_LATER;
    memcpy(to, answer->out.at + answer->sent, part);
    answer->sent += part;
    if (answer->sent == answer->out.len) {
        buf_done(&answer->out);
        answer->sent = 0;
    }
    return (ssize_t)part;
}

static void add_event(struct answer *answer, json_t *message)
{
    buf_add_text(&answer->out, "event: message\ndata: ");
    if (json_add(&answer->out, message) < 0)
        buf_add_text(&answer->out, "{}");
    buf_add_text(&answer->out, "\n\n");
    http_wake(answer->x);
}

static void say(void *user, json_t *message)
{
    struct answer *answer = user;
    own_json owned = message;
    if (!answer->streams || answer->out.len - answer->sent > NOTES_MAX)
        return;
    add_event(answer, owned);
    if (answer->flows)
        return;
    answer->flows = true;
    http_add_header(answer->x, "X-Accel-Buffering", "no");
    http_reply_pull(answer->x, 200, "text/event-stream", HTTP_UNKNOWN, pull);
}

static void end(void *user, json_t *message, unsigned status)
{
    struct answer *answer = user;
    answer->ended = true;
    if (answer->flows && message) {
        own_json owned = message;
        add_event(answer, owned);
    } else if (answer->flows) {
        http_wake(answer->x);
    } else if (message) {
        http_reply_json(answer->x, status, message);
    } else {
        http_reply_empty(answer->x, status);
    }
}

/* In a modern conversation the end of the connection cancels the request; in a legacy one it does
 * not, and the answer is lost. */
static void on_gone(struct http_exchange *x)
{
    struct answer *answer = take_ptr(x->state);
    if (!answer)
        return;
    struct mcp_hall *hall = answer->hall;
    if (!answer->ended) {
        mcp_leave(hall->mcp, answer, answer->modern);
        look(hall);
    }
    hall->answers--;
    buf_done(&answer->out);
    free(answer);
}

static void reply_fault(struct http_exchange *x, const json_t *id, struct mcp_fault *fault)
{
    http_reply_json(x, fault->status, mcp_reply_fault(id, fault));
}

/* --- routes --- */

static bool takes_streams(const struct http_exchange *x)
{
    const char *accept = http_header(x, "Accept");
    return accept && strcasestr(accept, "text/event-stream");
}

/* The conversation of a message; NULL after a fault. */
static struct mcp_peer *peer_of(struct mcp_hall *hall, struct http_exchange *x,
                                const struct mcp_message *message, bool modern,
                                struct mcp_fault *fault)
{
    const char *id = http_header(x, SESSION_HEADER);
    if (modern)
        return hall->open;
    if (message->kind == MCP_REQUEST && message->method &&
        strcmp(message->method, "initialize") == 0) {
        if (!json_is_string(json_object_get(message->params, "protocolVersion")))
            return hall->open; /* which says so */
        struct talk *talk = new_talk(hall);
        http_add_header(x, SESSION_HEADER, talk->id);
        return talk->peer;
    }
    struct talk *talk = id ? find_talk(hall, id) : NULL;
    if (talk) {
        talk->used_ns = clock_now_ns();
        return talk->peer;
    }
    if (id)
        mcp_fault_set(fault, MCP_E_REQUEST, 404, "there is no such session: send 'initialize'");
    else
        mcp_fault_set(fault, MCP_E_REQUEST, 400,
                      "header '" SESSION_HEADER "' is missing: send 'initialize' first, or say the "
                      "version in 'params._meta'");
    return NULL;
}

static void take(struct mcp_hall *hall, struct http_exchange *x, json_t *root,
                 struct mcp_peer *peer, bool modern, bool streams)
{
    const struct mcp_headers headers = { http_header(x, "MCP-Protocol-Version"),
                                         http_header(x, "Mcp-Method"), http_header(x, "Mcp-Name") };
    struct answer *answer = buf_alloc_zero(1, sizeof *answer);
    *answer = (struct answer){ .hall = hall, .x = x, .modern = modern, .streams = streams,
                               .out = BUF_INIT(STREAM_MAX) };
    x->state = answer;
    x->gone = on_gone;
    hall->answers++;
    const struct mcp_sink sink = { say, end, answer };
    mcp_take_json(peer, root, &headers, &sink);
    look(hall);
}

void mcp_hall_post(struct mcp_hall *hall, struct http_exchange *x)
{
    struct mcp_fault fault = MCP_FAULT_INIT;
    const struct mcp_headers headers = { http_header(x, "MCP-Protocol-Version"), NULL, NULL };
    hall->used_ns = clock_now_ns();
    own_json root = mcp_message_parse(buf_str(&x->body), &fault);
    if (!root) {
        reply_fault(x, NULL, &fault);
        return;
    }
    own_mcp_message message = MCP_MESSAGE_INIT;
    const bool batch = json_is_array(root);
    if (!batch && mcp_message_read(json_incref(root), &message, &fault) < 0) {
        reply_fault(x, message.id, &fault);
        return;
    }
    const bool modern = !batch && mcp_era_of(&message, &headers) == MCP_MODERN;
    struct mcp_peer *peer = peer_of(hall, x, &message, modern, &fault);
    if (peer)
        take(hall, x, json_incref(root), peer, modern, takes_streams(x));
    else
        reply_fault(x, message.id, &fault);
}

void mcp_hall_delete(struct mcp_hall *hall, struct http_exchange *x)
{
    const char *id = http_header(x, SESSION_HEADER);
    struct mcp_fault fault = MCP_FAULT_INIT;
    struct talk *talk = id ? find_talk(hall, id) : NULL;
    if (talk) {
        end_talk(hall, talk);
        look(hall);
        http_reply_empty(x, 204);
        return;
    }
    if (id)
        mcp_fault_set(&fault, MCP_E_REQUEST, 404, "there is no such session");
    else
        mcp_fault_set(&fault, MCP_E_REQUEST, 400, "header '" SESSION_HEADER "' is missing");
    reply_fault(x, NULL, &fault);
}
