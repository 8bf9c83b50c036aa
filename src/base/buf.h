/* Bytes that grow up to a fixed maximum. An append beyond the maximum fails (-1): every byte in
 * here may be an attacker's. A NUL that is not counted always follows the content. A failed malloc
 * ends the process: sizes are bounded, so the host is out of memory. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stddef.h>

#include "base/attr.h"
#include "base/str.h"

struct buf {
    char *at;
    size_t len;
    size_t room; /* bytes allocated, 0 or > len */
    size_t max;  /* maximum of len */
};

#define BUF_INIT(ceiling) ((struct buf){ .max = (ceiling) })

void buf_done(struct buf *buf);
#define own_buf attr_cleanup(buf_done) struct buf

/* Each appends and returns 0, or appends nothing and returns -1 when the maximum would be
 * exceeded. */
int buf_add(struct buf *buf, const void *bytes, size_t len);
int buf_add_str(struct buf *buf, struct str bytes);
int buf_add_text(struct buf *buf, const char *text);
int buf_printf(struct buf *buf, const char *fmt, ...) attr_printf(2, 3);

/* Room for `len` more bytes at the end, to be filled and then counted with buf_grew; NULL when the
 * maximum would be exceeded. */
char *buf_room(struct buf *buf, size_t len);
void buf_grew(struct buf *buf, size_t len);
/* Append the rest of a file. 0, or -1 with errno: EFBIG if it exceeds the maximum. */
int buf_read(struct buf *buf, int fd);
/* Drop `len` bytes from the front. */
void buf_drop(struct buf *buf, size_t len);
/* Hand the heap bytes over; the buffer is empty afterwards. Never NULL. */
char *buf_take(struct buf *buf);

static inline struct str buf_str(const struct buf *buf)
{
    return (struct str){ buf->at ? buf->at : "", buf->len };
}

/* malloc, calloc, strdup that end the process instead of returning NULL. */
void *buf_alloc(size_t bytes);
void *buf_alloc_zero(size_t count, size_t bytes);
/* Room for one more in a list that is full at each power of two; new members are zero. The caller
 * replaces its list by the result. */
void *buf_list_room(void *list, size_t count, size_t size);
char *buf_strdup(struct str text);

#endif
