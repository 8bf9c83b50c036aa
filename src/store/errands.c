/* One thread with a list of work, and its way back into the loop. Runs in the serve process. */
#include "store/errands.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/own.h"

#define STACK_BYTES (256u << 10)

/* First in, first out. */
struct line {
    struct errand *first, **end;
};

struct errands {
    struct loop *loop;
    struct loop_source bell; /* an eventfd: some errands are done */
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock; /* of the next three */
    pthread_cond_t more;
    struct line open, over;
    bool ends;
};

static void put_last(struct line *line, struct errand *errand)
{
    errand->next = NULL;
    *line->end = errand;
    line->end = &errand->next;
}

static struct errand *take_first(struct line *line)
{
    struct errand *errand = line->first;
    if (!errand)
        return NULL;
    line->first = errand->next;
    if (!line->first)
        line->end = &line->first;
    return errand;
}

static void *run(void *user)
{
    struct errands *errands = user;
    pthread_mutex_lock(&errands->lock);
    for (;;) {
        struct errand *errand = take_first(&errands->open);
        if (!errand && errands->ends)
            break;
        if (!errand) {
            pthread_cond_wait(&errands->more, &errands->lock);
            continue;
        }
        pthread_mutex_unlock(&errands->lock);
        errand->work(errand);
        pthread_mutex_lock(&errands->lock);
        put_last(&errands->over, errand);
        eventfd_write(errands->bell.fd, 1);
    }
    pthread_mutex_unlock(&errands->lock);
    return NULL;
}

static void call_done(struct errands *errands)
{
    for (;;) {
        pthread_mutex_lock(&errands->lock);
        struct errand *errand = take_first(&errands->over);
        pthread_mutex_unlock(&errands->lock);
        if (!errand)
            return;
        if (errand->done)
            errand->done(errand);
    }
}

static void on_bell(struct loop_source *source, uint32_t events)
{
    struct errands *errands = loop_owner(source, struct errands, bell);
    eventfd_t count;
    (void)events;
    if (eventfd_read(source->fd, &count) == 0)
        call_done(errands);
}

struct errands *errands_open(struct loop *loop, struct err *err)
{
    struct errands *errands = buf_alloc_zero(1, sizeof *errands);
    *errands = (struct errands){ .loop = loop,
                                 .lock = PTHREAD_MUTEX_INITIALIZER,
                                 .more = PTHREAD_COND_INITIALIZER };
    errands->open.end = &errands->open.first;
    errands->over.end = &errands->over.first;
    errands->bell = (struct loop_source){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                          .ready = LOOP_HANDLER(on_bell) };
    if (errands->bell.fd >= 0 && loop_add(loop, &errands->bell, EPOLLIN) == 0)
        return errands;
    err_sys(err, "make an event descriptor");
    own_close_fd(&errands->bell.fd);
    free(errands);
    return NULL;
}

/* Signals go to the loop's thread. */
static bool start(struct errands *errands)
{
    sigset_t all, before;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool runs = pthread_create(&errands->thread, &small, run, errands) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    return runs;
}

void errands_add(struct errands *errands, struct errand *errand)
{
    if (!errands->runs)
        errands->runs = start(errands);
    if (!errands->runs) { /* no thread to be had: the loop waits this once */
        errand->work(errand);
        pthread_mutex_lock(&errands->lock);
        put_last(&errands->over, errand);
        pthread_mutex_unlock(&errands->lock);
        eventfd_write(errands->bell.fd, 1);
        return;
    }
    pthread_mutex_lock(&errands->lock);
    put_last(&errands->open, errand);
    pthread_cond_signal(&errands->more);
    pthread_mutex_unlock(&errands->lock);
}

static void finish(struct errands *errands)
{
    if (!errands->runs)
        return;
    pthread_mutex_lock(&errands->lock);
    errands->ends = true;
    pthread_cond_signal(&errands->more);
    pthread_mutex_unlock(&errands->lock);
    pthread_join(errands->thread, NULL);
    errands->runs = errands->ends = false;
}

/* A `done` may add another errand. */
void errands_close(struct errands *errands)
{
    if (!errands)
        return;
    do {
        finish(errands);
        call_done(errands);
    } while (errands->runs || errands->over.first);
    int bell = errands->bell.fd;
    loop_remove(errands->loop, &errands->bell);
    own_close_fd(&bell);
    free(errands);
}
