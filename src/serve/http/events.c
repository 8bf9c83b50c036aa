/* Logs of events, and exchanges that follow them. Runs in the serve process, in its loop.
 * 1. An event is one JSON line, kept once however many follow; a slow follower holds its place and
 *    the line that it is in, nothing else.
 * 2. A log keeps at most max_bytes: the oldest lines go first, never the last one.
 * 3. A follower whose next line is gone is told how many it missed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "serve/http/http_int.h"

#define LINE_MAX_BYTES ((size_t)3 << 29)

struct line {
    unsigned refs;
    uint64_t seq;
    const char *name;
    size_t len;
    char text[];
};

struct events {
    unsigned refs;
    struct line **lines; /* their numbers are consecutive */
    size_t from, count;  /* those of `lines` that are kept */
    uint64_t next;
    size_t bytes, max_bytes;
    bool ended;
    size_t value_at; /* in the last line */
    struct http_follow *follows;
};

struct http_follow {
    struct http_inner *inner;
    struct events *events;
    struct http_follow *before, *after;         /* of the log */
    struct http_follow *before_all, *after_all; /* of the door */
    uint64_t next;     /* the seq that it sends next */
    struct line *line; /* in part */
    char head[96];     /* before the line, or all there is */
    size_t at, head_len;
    bool sse, pings, last;
    int64_t sent_ns;
};

/* --- the log --- */

struct events *events_new(size_t max_bytes)
{
    struct events *events = buf_alloc_zero(1, sizeof *events);
    *events = (struct events){ .refs = 1, .next = 1, .max_bytes = max_bytes };
    return events;
}

struct events *events_ref(struct events *events)
{
    events->refs++;
    return events;
}

static void line_unref(struct line *line)
{
    if (line && --line->refs == 0)
        free(line);
}

static void drop_first(struct events *events)
{
    struct line *line = events->lines[events->from];
    events->from++;
    events->count--;
    events->bytes -= line->len;
    line_unref(line);
}

/* Room for one more; the places of dropped lines are used again. */
static void make_room(struct events *events)
{
    size_t end = events->from + events->count;
    if (events->from > events->count) {
        memmove(events->lines, events->lines + events->from, events->count * sizeof *events->lines);
        events->from = 0;
    } else {
        events->lines = buf_list_room(events->lines, end, sizeof *events->lines);
    }
}

void events_unref(struct events *events)
{
    if (!events || --events->refs > 0)
        return;
    while (events->count)
        drop_first(events);
    free(events->lines);
    free(events);
}

bool events_ended(const struct events *events)
{
    return events->ended;
}

uint64_t events_next(const struct events *events)
{
    return events->next;
}

size_t events_bytes(const struct events *events)
{
    return events->bytes;
}

static void wake_all(struct events *events)
{
    for (struct http_follow *follow = events->follows; follow; follow = follow->after)
        http_resume(follow->inner);
}

/* Takes the text over as the next line. */
static void append(struct events *events, const char *name, struct str text)
{
    struct line *line = buf_alloc(sizeof *line + text.len);
    *line = (struct line){ .refs = 1, .seq = events->next++, .name = name, .len = text.len };
    memcpy(line->text, text.at, text.len);
    make_room(events);
    events->lines[events->from + events->count++] = line;
    events->bytes += line->len;
    while (events->bytes > events->max_bytes && events->count > 1)
        drop_first(events);
    wake_all(events);
}

void events_add(struct events *events, const char *name, json_t *members)
{
    own_json event = json_pack("{s:I, s:s}", "seq", (json_int_t)events->next, "event", name);
    own_json owned = members;
    own_buf text = BUF_INIT(LINE_MAX_BYTES);
    if (owned)
        json_object_update_missing(event, owned);
    if (!events->ended && json_add(&text, event) == 0)
        append(events, name, buf_str(&text));
}

void events_end(struct events *events, const char *name, struct str value)
{
    own_buf text = BUF_INIT(value.len + 128);
    if (events->ended)
        return;
    buf_printf(&text, "{\"seq\":%llu,\"event\":\"end\",\"%s\":", (unsigned long long)events->next,
               name);
    events->value_at = text.len;
    buf_add_str(&text, value);
    buf_add_text(&text, "}");
    append(events, "end", buf_str(&text));
    events->ended = true;
}

struct str events_value(const struct events *events)
{
    if (!events->ended)
        return STR_NONE;
    const struct line *last = events->lines[events->from + events->count - 1];
    return (struct str){ last->text + events->value_at, last->len - events->value_at - 1 };
}

/* --- a follower --- */

/* The line of that number, or the first one that is kept; NULL: there is none yet. */
static struct line *find_line(const struct events *events, uint64_t seq)
{
    uint64_t first = events->next - events->count;
    if (seq >= events->next)
        return NULL;
    return events->lines[events->from + (seq > first ? (size_t)(seq - first) : 0)];
}

static void begin_head(struct http_follow *follow, const char *name, uint64_t seq, bool counted)
{
    int len = 0;
    if (follow->sse && counted)
        len = snprintf(follow->head, sizeof follow->head, "id: %llu\n", (unsigned long long)seq);
    if (follow->sse)
        len += snprintf(follow->head + len, sizeof follow->head - (size_t)len,
                        "event: %.32s\ndata: ", name);
    follow->head_len = (size_t)len;
    follow->at = 0;
}

static void add_own(struct http_follow *follow, const char *text)
{
    int len = snprintf(follow->head + follow->head_len, sizeof follow->head - follow->head_len,
                       "%s%s", text, follow->sse ? "\n\n" : "\n");
    follow->head_len += (size_t)len;
}

/* Makes the next piece ready. False: there is none. */
static bool advance(struct http_follow *follow)
{
    const struct events *events = follow->events;
    struct line *line = find_line(events, follow->next);
    char text[64];
    if (!line && events->ended && !follow->last) { /* it began after the end: the end comes again */
        follow->next = events->next - 1;
        line = find_line(events, follow->next);
    }
    if (line && line->seq > follow->next) {
        begin_head(follow, "lost", 0, /* counted= */ false);
        snprintf(text, sizeof text, "{\"event\":\"lost\",\"events\":%llu}",
                 (unsigned long long)(line->seq - follow->next));
        add_own(follow, text);
        follow->next = line->seq;
        return true;
    }
    if (line) {
        line->refs++;
        follow->line = line;
        follow->last = strcmp(line->name, "end") == 0;
        follow->next = line->seq + 1;
        begin_head(follow, line->name, line->seq, /* counted= */ true);
        return true;
    }
    if (!follow->pings)
        return false;
    follow->pings = false;
    begin_head(follow, "ping", 0, /* counted= */ false);
    add_own(follow, "{\"event\":\"ping\"}");
    return true;
}

static size_t copy(struct http_follow *follow, char *to, size_t room)
{
    const char *tail = follow->sse ? "\n\n" : "\n";
    struct str parts[3] = { { follow->head, follow->head_len }, STR_NONE, STR_NONE };
    if (follow->line) {
        parts[1] = (struct str){ follow->line->text, follow->line->len };
        parts[2] = str_of(tail);
    }
    size_t done = 0, skip = follow->at;
    for (size_t i = 0; i < array_len(parts); i++) {
        size_t from = skip < parts[i].len ? skip : parts[i].len;
        size_t n = parts[i].len - from;
        n = n < room - done ? n : room - done;
        if (n > 0)
            memcpy(to + done, parts[i].at + from, n);
        done += n;
        skip -= from;
    }
    follow->at += done;
    if (follow->at == parts[0].len + parts[1].len + parts[2].len) {
        line_unref(follow->line);
        follow->line = NULL;
        follow->head_len = 0;
    }
    return done;
}

static ssize_t pull_events(struct http_exchange *x, char *to, size_t room)
{
    struct http_follow *follow = x->inner->follow;
    size_t done = 0;
    while (done < room && (follow->head_len || follow->line || advance(follow)))
        done += copy(follow, to + done, room - done);
    if (done > 0) {
        follow->sent_ns = clock_now_ns();
        return (ssize_t)done;
    }
    return follow->events->ended && follow->next >= follow->events->next ? HTTP_END : HTTP_LATER;
}

void http_reply_events(struct http_exchange *x, struct events *events, uint64_t from)
{
    struct http_inner *inner = x->inner;
    struct http *http = x->http;
    struct http_follow *follow = buf_alloc_zero(1, sizeof *follow);
    *follow = (struct http_follow){ .inner = inner, .events = events_ref(events), .next = from,
                                    .sse = http_wants(x) != HTTP_NDJSON, .after = events->follows,
                                    .after_all = http->follows, .sent_ns = clock_now_ns() };
    if (events->follows)
        events->follows->before = follow;
    events->follows = follow;
    if (http->follows)
        http->follows->before_all = follow;
    http->follows = follow;
    http->streams++;
    inner->follow = follow;
    http_add_header(x, "X-Accel-Buffering", "no");
    http_reply_pull(x, MHD_HTTP_OK, follow->sse ? "text/event-stream" : "application/x-ndjson",
                    HTTP_UNKNOWN, pull_events);
}

void http_follow_done(struct http_inner *inner)
{
    struct http_follow *follow = inner->follow;
    if (!follow)
        return;
    *(follow->before ? &follow->before->after : &follow->events->follows) = follow->after;
    if (follow->after)
        follow->after->before = follow->before;
    *(follow->before_all ? &follow->before_all->after_all
                         : &inner->x.http->follows) = follow->after_all;
    if (follow->after_all)
        follow->after_all->before_all = follow->before_all;
    inner->x.http->streams--;
    line_unref(follow->line);
    events_unref(follow->events);
    free(follow);
    inner->follow = NULL;
}

void http_follow_ping(struct http *http, int64_t now_ns)
{
    int64_t every_ns = http->caps[HTTP_PING_S] * CLOCK_S;
    for (struct http_follow *follow = http->follows; follow; follow = follow->after_all) {
        if (now_ns - follow->sent_ns >= every_ns && follow->inner->suspended) {
            follow->pings = true;
            http_resume(follow->inner);
        }
    }
}

int http_events_from(const struct http_exchange *x, uint64_t *out, struct err *err)
{
    const char *from = http_query(x, "from"), *last = http_header(x, "Last-Event-ID");
    *out = 1;
    if (from)
        return parse_from(str_of(from), "from", 1, out, err);
    if (last && parse_from(str_of(last), "Last-Event-ID", 0, out, err) < 0)
        return -1;
    *out += last != NULL;
    return 0;
}
