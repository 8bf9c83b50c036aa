/* Fuzz the merging of a box's pipes: bytes with marks in them, in pieces of varying size, to three
 * pipes. Nothing is lost but exact marks, and each pipe keeps its own order. In the input "@" and a
 * byte make a mark; other bytes are output. The first byte is the size of pieces. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/talk/order.h"

#define SECRET "0123456789abcdef"
#define ROOM (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct buf got[ORDER_PIPES];

static void tell(void *user, unsigned pipe, uint32_t cell, struct str bytes)
{
    (void)user;
    (void)cell;
    buf_add_str(&got[pipe], bytes);
}

/* A turn of the engine: reads the others, and tells a part. */
static void turn(struct order *order, unsigned pipe)
{
    if (!order_is_settled(order))
        order_settle(order, order_newest(order, pipe));
    order_tell(order, 3);
}

/* The bytes of one pipe: given[] with marks, and as they must come out. */
static void make(const uint8_t *data, size_t size, struct buf *given, struct buf *want)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] == '@' && i + 1 < size) {
            buf_printf(given, "%c" SECRET "%08x%08x", ORDER_LEAD, data[i + 1] * 0x1010101u,
                       data[i + 1] % 3u);
            i++;
        } else {
            buf_add(given, &data[i], 1);
            buf_add(want, &data[i], 1);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct order order;
    struct buf given[ORDER_PIPES], want[ORDER_PIPES];
    size_t piece = size > 0 ? data[0] % 61 + 1 : 1, part = size / ORDER_PIPES;
    order_init(&order, tell, NULL);
    memcpy(order.secret, SECRET, sizeof SECRET);
    for (unsigned i = 0; i < ORDER_PIPES; i++) {
        given[i] = want[i] = got[i] = BUF_INIT(ROOM * 17);
        make(data + i * part, part, &given[i], &want[i]);
    }
    for (size_t at = 0, left = 1; left > 0; at += piece) {
        left = 0;
        for (unsigned i = 0; i < ORDER_PIPES; i++) {
            size_t rest = at < given[i].len ? given[i].len - at : 0;
            if (rest > 0 &&
                !order_add(&order, i,
                           (struct str){ given[i].at + at, rest < piece ? rest : piece }))
                turn(&order, i);
            left += rest;
        }
    }
    order_tell_all(&order, /* whole= */ true);
    /* Output that spells a mark by itself is a mark: only then may bytes be missing. */
    for (unsigned i = 0; i < ORDER_PIPES; i++) {
        bool spells = memmem(want[i].at ? want[i].at : "", want[i].len, SECRET, sizeof SECRET - 1);
        if (!spells && !str_eq(buf_str(&got[i]), buf_str(&want[i])))
            abort();
        if (order_waits(&order))
            abort();
    }
    for (unsigned i = 0; i < ORDER_PIPES; i++) {
        buf_done(&given[i]);
        buf_done(&want[i]);
        buf_done(&got[i]);
    }
    order_done(&order);
    return 0;
}
