/* Server-sent events, in pieces of any size. */
#include "check.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/own.h"
#include "net/sse.h"

static void note(void *user, struct str name, struct str data)
{
    buf_printf(user, "[%.*s|%.*s]", (int)name.len, name.at, (int)data.len, data.at);
}

static void check_events(struct str text, const char *want)
{
    for (size_t step = 1; step <= text.len; step++) {
        own_buf got = BUF_INIT(4096);
        struct net_sse sse;
        net_sse_start(&sse, note, &got);
        for (size_t at = 0; at < text.len; at += step) {
            size_t len = text.len - at < step ? text.len - at : step;
            CHECK_INT(net_sse_feed(&sse, (struct str){ text.at + at, len }), 0);
        }
        net_sse_done(&sse);
        if (strcmp(buf_str(&got).at, want) != 0)
            check_failed(__FILE__, __LINE__, "in steps of %zu: \"%s\", not \"%s\"", step,
                         buf_str(&got).at, want);
    }
}

TEST(net_sse_reads_events)
{
    check_events(STR("event: a\ndata: 1\n\ndata: 2\n\n"), "[a|1][|2]");
    check_events(STR("data:1\n\ndata:  2\n\ndata\n\n"), "[|1][| 2][|]");
    check_events(STR("data: {\ndata: }\n\n"), "[|{\n}]");
    check_events(STR("event: a\nevent: b\ndata: 1\n\n"), "[b|1]");
}

TEST(net_sse_lines_end_in_any_way)
{
    check_events(STR("event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n"), "[a|1][|2]");
    check_events(STR("event: a\rdata: 1\r\rdata: 2\r\r"), "[a|1][|2]");
    check_events(STR("data: 1\r\n\ndata: 2\n\r\n"), "[|1][|2]");
}

TEST(net_sse_passes_over_what_is_no_event)
{
    check_events(STR(": comment\n\n:\ndata: 1\n: more\nid: 7\nretry: 3\nother: x\n\n"), "[|1]");
    check_events(STR("event: nothing\n\ndata: 1\n\n"), "[|1]");
    check_events(STR("data: 1\n\ndata: cut off"), "[|1]");
    check_events(STR("data: 1\n\ndata: cut off\n"), "[|1]");
    check_events(STR("\xef\xbb\xbf"
                     "data: 1\n\n\xef\xbb\xbf"
                     "data: 2\n\n"),
                 "[|1]");
}

TEST(net_sse_is_capped)
{
    own_buf got = BUF_INIT(4096);
    struct net_sse sse;
    net_sse_start(&sse, note, &got);
    own_str line = buf_alloc(1 << 20);
    memset(line, 'x', 1 << 20);
    int rc = 0;
    for (size_t i = 0; i < 2 + (NET_SSE_EVENT_MAX >> 20) && rc == 0; i++)
        rc = net_sse_feed(&sse, (struct str){ line, 1 << 20 });
    CHECK_INT(rc, -1);
    net_sse_done(&sse);
    net_sse_start(&sse, note, &got);
    rc = 0;
    for (size_t i = 0; i < 2 + (NET_SSE_EVENT_MAX >> 20) && rc == 0; i++)
        rc = net_sse_feed(&sse, STR("data: ")) ||
             net_sse_feed(&sse, (struct str){ line, 1 << 20 }) || net_sse_feed(&sse, STR("\n"));
    CHECK(rc != 0);
    net_sse_done(&sse);
    CHECK_INT(got.len, 0);
}
