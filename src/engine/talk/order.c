/* Takes marks out of a box's output and merges its pipes by them. Runs in the engine; every byte
 * comes from the box. Nothing waits here longer than the caller lets it, and nothing is dropped but
 * exact marks. */
#include "engine/talk/order.h"

#include <stdlib.h>
#include <string.h>

#define HELD_MAX (1u << 20) /* bytes of one pipe that wait; the caller reads far less at once */

void order_init(struct order *order, order_tells *tell, void *user)
{
    *order = (struct order){ .tell = tell, .user = user };
    for (unsigned i = 0; i < ORDER_PIPES; i++)
        order->pipe[i].bytes = BUF_INIT(HELD_MAX);
}

void order_done(struct order *order)
{
    for (unsigned i = 0; i < ORDER_PIPES; i++) {
        buf_done(&order->pipe[i].bytes);
        free(order->pipe[i].cuts);
        order->pipe[i].cuts = NULL;
        order->pipe[i].cut_count = order->pipe[i].cut_next = 0;
    }
}

void order_hand_over(struct order *from, struct order *to)
{
    for (unsigned i = 0; i < ORDER_STREAMS; i++) {
        struct order_pipe *old = &from->pipe[i], *new = &to->pipe[i];
        new->cell = old->cell;
        new->torn_len = old->torn_len;
        memcpy(new->torn, old->torn, old->torn_len);
        old->cell = 0;
        old->torn_len = 0;
    }
}

/* --- marks --- */

/* How many bytes at the start of `bytes` agree with a mark. */
static size_t agrees(const struct order *order, struct str bytes)
{
    size_t i = 0;
    for (; i < bytes.len && i < ORDER_MARK; i++) {
        char c = bytes.at[i];
        bool fits = i == 0              ? c == ORDER_LEAD
                    : i <= ORDER_SECRET ? c == order->secret[i - 1]
                                        : (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
        if (!fits)
            break;
    }
    return i;
}

static uint32_t number_of(const char *digits)
{
    uint32_t number = 0;
    for (const char *c = digits; c < digits + ORDER_DIGITS; c++)
        number = number << 4 | (uint32_t)(*c <= '9' ? *c - '0' : *c - 'a' + 10);
    return number;
}

static bool has_marks(const struct order *order)
{
    return order->secret[0] && order->marks < ORDER_MARKS_MAX;
}

/* The bytes before the next mark, or before an end that may be a part of one. *out_mark: the bytes
 * of the mark or of that part. */
static size_t before_mark(const struct order *order, struct str bytes, size_t *out_mark)
{
    *out_mark = 0;
    const char *end = bytes.at + bytes.len;
    const char *at = has_marks(order) && bytes.len > 0 ? memchr(bytes.at, ORDER_LEAD, bytes.len)
                                                       : NULL;
    while (at) {
        struct str rest = { at, (size_t)(end - at) };
        size_t len = agrees(order, rest);
        if (len == ORDER_MARK || len == rest.len) {
            *out_mark = len;
            return (size_t)(at - bytes.at);
        }
        at = rest.len > 1 ? memchr(at + 1, ORDER_LEAD, rest.len - 1) : NULL;
    }
    return bytes.len;
}

/* --- what waits --- */

static size_t left(const struct order_pipe *pipe)
{
    return pipe->bytes.len - pipe->told;
}

/* Cuts at the next byte count from here on. */
static void pass_cuts(struct order_pipe *pipe)
{
    while (pipe->cut_next < pipe->cut_count && pipe->cuts[pipe->cut_next].at <= pipe->told) {
        pipe->epoch = pipe->cuts[pipe->cut_next].epoch;
        pipe->cell = pipe->cuts[pipe->cut_next++].cell;
    }
    if (left(pipe) == 0) {
        pipe->bytes.len = pipe->told = 0;
        pipe->cut_count = pipe->cut_next = 0;
    }
}

static void hold(struct order *order, struct order_pipe *pipe, struct str bytes)
{
    if (pipe->bytes.len + bytes.len > HELD_MAX)
        order_tell_all(order, /* whole= */ false);
    buf_add_str(&pipe->bytes, bytes);
}

static uint32_t last_epoch(const struct order_pipe *pipe)
{
    return pipe->cut_count > pipe->cut_next ? pipe->cuts[pipe->cut_count - 1].epoch : pipe->epoch;
}

static uint32_t last_cell(const struct order_pipe *pipe)
{
    return pipe->cut_count > pipe->cut_next ? pipe->cuts[pipe->cut_count - 1].cell : pipe->cell;
}

/* A number that goes back is that of the mark before it: so what waits is settled at once. Of marks
 * without a byte between them the last one counts, and one that changes nothing is no cut: so
 * there are fewer cuts than bytes, and pieces of one writer are told as one. */
static void cut(struct order *order, struct order_pipe *pipe, const char *mark)
{
    uint32_t last = last_epoch(pipe), number = number_of(mark + 1 + ORDER_SECRET);
    uint32_t epoch = number > last ? number : last;
    uint32_t cell = number_of(mark + 1 + ORDER_SECRET + ORDER_DIGITS);
    order->marks += number > 0;
    if (pipe->cut_count > pipe->cut_next && pipe->cuts[pipe->cut_count - 1].at == pipe->bytes.len)
        pipe->cut_count--;
    if (epoch == last_epoch(pipe) && cell == last_cell(pipe))
        return;
    pipe->cuts = buf_list_room(pipe->cuts, pipe->cut_count, sizeof *pipe->cuts);
    pipe->cuts[pipe->cut_count++] = (struct order_cut){ pipe->bytes.len, epoch, cell };
    pass_cuts(pipe);
}

/* Completes a mark that a read has torn; *bytes loses what belongs to it. Its secret and number do
 * not hold the lead byte: if it is none, all of it is output. */
static void mend(struct order *order, struct order_pipe *pipe, struct str *bytes)
{
    char mark[ORDER_MARK];
    size_t missing = ORDER_MARK - pipe->torn_len;
    size_t more = bytes->len < missing ? bytes->len : missing;
    memcpy(mark, pipe->torn, pipe->torn_len);
    memcpy(mark + pipe->torn_len, bytes->at, more);
    struct str joined = { mark, pipe->torn_len + more };
    if (!has_marks(order) || agrees(order, joined) < joined.len) {
        hold(order, pipe, (struct str){ pipe->torn, pipe->torn_len });
        pipe->torn_len = 0;
        return;
    }
    *bytes = (struct str){ bytes->at + more, bytes->len - more };
    pipe->torn_len = joined.len < ORDER_MARK ? joined.len : 0;
    if (joined.len == ORDER_MARK)
        cut(order, pipe, mark);
    else
        memcpy(pipe->torn, mark, joined.len);
}

bool order_add(struct order *order, unsigned id, struct str bytes)
{
    struct order_pipe *pipe = &order->pipe[id];
    size_t mark;
    bool was_torn = pipe->torn_len > 0;
    if (was_torn)
        mend(order, pipe, &bytes);
    size_t before = before_mark(order, bytes, &mark);
    /* After a mark that came without its bytes, the other pipes must be read first. */
    bool settled = pipe->epoch <= order->settled;
    if (before == bytes.len && !was_torn && settled && !order_waits(order)) {
        order->tell(order->user, id, pipe->cell, bytes);
        return true;
    }
    while (bytes.len > 0) {
        hold(order, pipe, (struct str){ bytes.at, before });
        if (mark == ORDER_MARK) {
            cut(order, pipe, bytes.at + before);
        } else {
            memcpy(pipe->torn, bytes.at + before, mark);
            pipe->torn_len = mark;
        }
        bytes = (struct str){ bytes.at + before + mark, bytes.len - before - mark };
        before = before_mark(order, bytes, &mark);
    }
    return false;
}

bool order_waits(const struct order *order)
{
    for (unsigned i = 0; i < ORDER_PIPES; i++)
        if (left(&order->pipe[i]) > 0)
            return true;
    return false;
}

bool order_is_settled(const struct order *order)
{
    for (unsigned i = 0; i < ORDER_PIPES; i++)
        if (left(&order->pipe[i]) > 0 && order->pipe[i].epoch <= order->settled)
            return true;
    return false;
}

unsigned order_newest(const struct order *order, unsigned read)
{
    unsigned newest = read;
    for (unsigned i = 0; i < ORDER_PIPES; i++)
        if (left(&order->pipe[i]) > 0 &&
            last_epoch(&order->pipe[i]) > last_epoch(&order->pipe[newest]))
            newest = i;
    return newest;
}

void order_settle(struct order *order, unsigned newest)
{
    order->settled = last_epoch(&order->pipe[newest]);
}

/* --- telling --- */

static struct order_pipe *earliest(struct order *order, uint32_t most)
{
    struct order_pipe *found = NULL;
    for (unsigned i = 0; i < ORDER_PIPES; i++) {
        struct order_pipe *pipe = &order->pipe[i];
        if (left(pipe) > 0 && pipe->epoch <= most && (!found || pipe->epoch < found->epoch))
            found = pipe;
    }
    return found;
}

static bool tell_one(struct order *order, uint32_t most)
{
    struct order_pipe *pipe = earliest(order, most);
    if (!pipe)
        return false;
    bool is_cut = pipe->cut_next < pipe->cut_count;
    size_t end = is_cut ? pipe->cuts[pipe->cut_next].at : pipe->bytes.len;
    struct str bytes = { pipe->bytes.at + pipe->told, end - pipe->told };
    order->tell(order->user, (unsigned)(pipe - order->pipe), pipe->cell, bytes);
    pipe->told = end;
    pass_cuts(pipe);
    return true;
}

void order_tell(struct order *order, unsigned most)
{
    while (most > 0 && tell_one(order, order->settled))
        most--;
}

void order_tell_all(struct order *order, bool whole)
{
    while (tell_one(order, UINT32_MAX))
        ;
    for (unsigned i = 0; whole && i < ORDER_PIPES; i++) {
        struct order_pipe *pipe = &order->pipe[i];
        if (pipe->torn_len > 0)
            order->tell(order->user, i, pipe->cell, (struct str){ pipe->torn, pipe->torn_len });
        pipe->torn_len = 0;
    }
}
