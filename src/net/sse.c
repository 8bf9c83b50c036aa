/* Server-sent events: lines end in LF, CR or both; data lines are joined by LF; a blank line ends
 * an event; events without data, comments, ids and retry times are ignored. Passes bytes on
 * unchecked. */
#include "net/sse.h"

#include <string.h>

void net_sse_start(struct net_sse *sse, void (*on_event)(void *, struct str, struct str),
                   void *user)
{
    *sse = (struct net_sse){ .line = BUF_INIT(NET_SSE_EVENT_MAX),
                             .name = BUF_INIT(NET_SSE_EVENT_MAX),
                             .data = BUF_INIT(NET_SSE_EVENT_MAX),
                             .on_event = on_event,
                             .user = user };
}

void net_sse_done(struct net_sse *sse)
{
    buf_done(&sse->line);
    buf_done(&sse->name);
    buf_done(&sse->data);
}

static void dispatch(struct net_sse *sse)
{
    if (sse->has_data)
        sse->on_event(sse->user, buf_str(&sse->name), buf_str(&sse->data));
    buf_drop(&sse->name, sse->name.len);
    buf_drop(&sse->data, sse->data.len);
    sse->has_data = false;
}

static int take_field(struct net_sse *sse, struct str line)
{
    const char *colon = memchr(line.at, ':', line.len);
    struct str field = { line.at, colon ? (size_t)(colon - line.at) : line.len };
    struct str value = { line.at + field.len, line.len - field.len };
    size_t skip = value.len > 1 && value.at[1] == ' ' ? 2 : value.len > 0 ? 1 : 0;
    value = (struct str){ value.at + skip, value.len - skip };
    if (str_is(field, "event")) {
        buf_drop(&sse->name, sse->name.len);
        return buf_add_str(&sse->name, value);
    }
    if (!str_is(field, "data"))
        return 0;
    if (sse->has_data && buf_add_text(&sse->data, "\n") < 0)
        return -1;
    sse->has_data = true;
    return buf_add_str(&sse->data, value);
}

static int take_line(struct net_sse *sse)
{
    struct str line = buf_str(&sse->line), mark = STR("\xef\xbb\xbf");
    if (!sse->past_mark && line.len >= mark.len && memcmp(line.at, mark.at, mark.len) == 0)
        line = (struct str){ line.at + mark.len, line.len - mark.len };
    sse->past_mark = true;
    int rc = 0;
    if (line.len == 0)
        dispatch(sse);
    else
        rc = take_field(sse, line);
    buf_drop(&sse->line, sse->line.len);
    return rc;
}

int net_sse_feed(struct net_sse *sse, struct str bytes)
{
    while (bytes.len > 0) {
        if (sse->after_cr && bytes.at[0] == '\n')
            bytes = (struct str){ bytes.at + 1, bytes.len - 1 };
        sse->after_cr = false;
        size_t len = 0;
        while (len < bytes.len && bytes.at[len] != '\n' && bytes.at[len] != '\r')
            len++;
        if (buf_add(&sse->line, bytes.at, len) < 0)
            return -1;
        if (len == bytes.len)
            return 0;
        sse->after_cr = bytes.at[len] == '\r';
        bytes = (struct str){ bytes.at + len + 1, bytes.len - len - 1 };
        if (take_line(sse) < 0)
            return -1;
    }
    return 0;
}
