/* One epoll loop for a whole process: descriptors and timers with callbacks. No threads. A source
 * or timer is a member of its owner; the callback finds the owner with loop_owner. Removing a
 * source inside a callback is safe: the loop drops its remaining events of the same round. */
#ifndef BASE_LOOP_H
#define BASE_LOOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>

#include "base/attr.h"
#include "base/clock.h"

#define LOOP_BATCH 64
#define LOOP_NEVER INT64_MAX
#define LOOP_STALL_NS CLOCK_S

struct loop_source {
    int fd; /* -1: not watched */
    void (*ready)(struct loop_source *source, uint32_t events);
    const char *name; /* of the handler */
};

struct loop_timer {
    int64_t at_ns; /* monotonic clock */
    void (*due)(struct loop_timer *timer);
    const char *name; /* of the handler */
    struct loop_timer *before, *after;
    bool set;
};

/* A handler with its name: a stall report names the handler that took too long. */
#define LOOP_HANDLER(handler) handler, __FILE__ " " #handler
#define loop_due(timer, handler) ((timer)->due = (handler), (timer)->name = __FILE__ " " #handler)

/* The time from one wait to the next. Another thread may read it. */
struct loop_turn {
    _Atomic int64_t since_ns;  /* 0: the loop waits */
    const char *_Atomic where; /* the running handler */
};

struct loop {
    int epoll;
    struct loop_timer *timers; /* unordered: there are few */
    struct epoll_event batch[LOOP_BATCH];
    int batch_len;
    int64_t now_ns;         /* before this turn's wait: of events up to then, handlers have run
                             * before a timer does, however late the loop is */
    int64_t awake_until_ns; /* poll without sleeping until then: an event is expected */
    struct loop_turn turn;
    int64_t longest_ns; /* longest turn so far */
    uint64_t stalls;    /* turns of LOOP_STALL_NS and more */
};
#define LOOP_INIT ((struct loop){ .epoll = -1 })

/* The struct that a source or timer is a member of. */
#define loop_owner(pointer, type, member) ((type *)((char *)(pointer) - offsetof(type, member)))

/* 0, or -1 with errno. */
int loop_open(struct loop *loop) attr_must_use;
void loop_close(struct loop *loop);

/* Watch source->fd for epoll events. Set the callback first. */
int loop_add(struct loop *loop, struct loop_source *source, uint32_t events) attr_must_use;
void loop_change(struct loop *loop, struct loop_source *source, uint32_t events);
/* Stop watching and forget the descriptor, which stays open. */
void loop_remove(struct loop *loop, struct loop_source *source);
/* The same for a descriptor that is closed already. */
void loop_forget(struct loop *loop, struct loop_source *source);

/* Call back once at that time; LOOP_NEVER cancels. */
void loop_set_timer(struct loop *loop, struct loop_timer *timer, int64_t at_ns);

/* Wait for events and timers, and call their handlers. 0, or -1 with errno. */
int loop_turn(struct loop *loop) attr_must_use;

#endif
