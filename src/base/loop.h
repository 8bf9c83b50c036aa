/* One epoll loop for a whole process: descriptors and times that call back. No
 * threads. A source or timer is a member of what it belongs to, and is found from
 * it by the callback. Removing a source inside a callback is safe: events of the
 * same round that are still due for it are dropped. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/attr.h"

#define LOOP_BATCH 64
#define LOOP_NEVER INT64_MAX
#define LOOP_STALL_NS INT64_C(1000000000)

struct loop_source {
    int fd; /* -1: not watched */
    void (*ready)(struct loop_source *source, uint32_t events);
    const char *name; /* of that handler */
};

struct loop_timer {
    int64_t at_ns; /* of the monotonic clock */
    void (*due)(struct loop_timer *timer);
    const char *name; /* of that handler */
    struct loop_timer *before, *after;
    bool set;
};

/* A handler with its name, for whoever asks what takes so long. */
#define LOOP_HANDLER(handler) handler, __FILE__ " " #handler
#define loop_due(timer, handler) ((timer)->due = (handler), (timer)->name = __FILE__ " " #handler)

/* From one wait to the next. Another thread may read it. */
struct loop_turn {
    _Atomic int64_t since_ns;  /* 0: the loop waits */
    const char *_Atomic where; /* the handler under way */
};

struct loop {
    int epoll;
    struct loop_timer *timers; /* unordered: there are few */
    struct epoll_event batch[LOOP_BATCH];
    int batch_len;
    int64_t awake_until_ns; /* do not sleep before: something is due at any moment */
    struct loop_turn turn;
    int64_t longest_ns; /* turn so far */
    uint64_t stalls;    /* turns of LOOP_STALL_NS and more */
};
#define LOOP_INIT ((struct loop){ .epoll = -1 })

/* The thing that a source or timer is a member of. */
#define loop_owner(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

/* 0, or -1 with errno. */
int loop_open(struct loop *loop) attr_must_use;
void loop_close(struct loop *loop);

/* Watch source->fd, whose callback is set, for epoll events. */
int loop_add(struct loop *loop, struct loop_source *source, uint32_t events) attr_must_use;
void loop_change(struct loop *loop, struct loop_source *source, uint32_t events);
/* Stop watching and forget the descriptor, which stays open. */
void loop_remove(struct loop *loop, struct loop_source *source);
/* The same where it is closed already. */
void loop_forget(struct loop *loop, struct loop_source *source);

/* Call back once at that time; LOOP_NEVER takes it back. */
void loop_set_timer(struct loop *loop, struct loop_timer *timer, int64_t at_ns);

/* Wait for the next events and times, and serve them. 0, or -1 with errno. */
int loop_turn(struct loop *loop) attr_must_use;

#endif
