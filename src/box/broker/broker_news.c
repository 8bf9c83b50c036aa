/* Events and the news for the engine: reports of boxes under construction, forks, deaths, out of
 * memory. Broker only. */
#include "box/broker/broker.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"

static void on_death(struct broker *broker, pid_t pid, int status, const struct rusage *used);

/* News that the engine's socket has no room for: the broker must not wait for a hanging engine. The
 * queue is bounded: an engine that sends no calls causes little more news. */
#define LETTERS 2048
static struct letter {
    struct box_news news;
    int fds[BOX_NEWS_FDS];
    size_t count;
} letters[LETTERS];
static unsigned first_letter, end_letter;

static bool send_letter(const struct broker *broker, const struct letter *letter)
{
    if (io_send(broker->engine, &letter->news, sizeof letter->news, letter->fds, letter->count) ==
        0)
        return true;
    if (errno != EAGAIN)
        _exit(0); /* the engine is gone: end everything */
    return false;
}

bool broker_tell_waits(void)
{
    return first_letter != end_letter;
}

void broker_tell_rest(const struct broker *broker)
{
    while (broker_tell_waits()) {
        struct letter *letter = &letters[first_letter % LETTERS];
        if (!send_letter(broker, letter))
            return;
        broker_child_close(letter->fds, (int)letter->count);
        first_letter++;
    }
}

/* The socket does not block (broker_set_up). */
void broker_tell(const struct broker *broker, const struct box_news *news, const int *fds,
                 size_t count)
{
    struct letter letter = { .news = *news, .count = count };
    memcpy(letter.fds, fds ? fds : letter.fds, count * sizeof fds[0]);
    if (!broker_tell_waits() && send_letter(broker, &letter))
        return;
    if (end_letter - first_letter == LETTERS)
        _exit(75);
    for (size_t i = 0; i < count; i++) {
        letter.fds[i] = fcntl(letter.fds[i], F_DUPFD_CLOEXEC, 3);
        if (letter.fds[i] < 0)
            _exit(75);
    }
    letters[end_letter++ % LETTERS] = letter;
}

void broker_tell_failure(const struct broker *broker, uint32_t id, enum box_step step)
{
    struct box_news news = { .kind = BOX_NEWS_FAILED, .box = id, .step = step, .error = errno };
    if (step == BOX_STEP_POSTURE && id < BOX_MAX)
        news.walls = broker->box[id].occupant_walls;
    broker_tell(broker, &news, NULL, 0);
}

void broker_tell_zygote_gone(const struct broker *broker, uint32_t id, enum box_step step)
{
    struct box_news news = { .kind = BOX_NEWS_ZYGOTE_GONE, .box = id, .step = step,
                             .error = errno };
    broker_tell(broker, &news, NULL, 0);
}

static void tell_ready(const struct broker *broker, uint32_t id)
{
    struct box_news news = { .kind = BOX_NEWS_READY, .box = id, .walls = broker->box[id].walls };
    broker_tell(broker, &news, NULL, 0);
}

static void tell_started(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    struct box_news news = { .kind = BOX_NEWS_STARTED, .box = id, .walls = box->occupant_walls };
    int sent[BOX_NEWS_FDS];
    size_t count = 0;
    broker_box_stats(box, &news.stats);
    for (int i = 0; i < BOX_NEWS_FDS; i++) {
        if (box->ours[i] >= 0) {
            news.fds |= 1u << i;
            sent[count++] = box->ours[i];
        }
    }
    broker_tell(broker, &news, sent, count);
    broker_child_close(box->ours, BOX_NEWS_FDS);
}

/* Is the box killed, with all processes reaped and none on the way in? While a box is being
 * released there is no more news. */
void broker_tell_if_empty(struct broker *broker, struct broker_box *box)
{
    struct box_news news = { .kind = BOX_NEWS_EMPTY, .box = (uint32_t)(box - broker->box) };
    if (!box->used || box->empty || box->releasing || !box->killed_at_ns || box->init ||
        box->occupant || box->keep.keeper || box->sweep.pid || box->stage != BROKER_STILL)
        return;
    box->empty = true;
    box->kill_to_empty_us = (clock_now_ns() - box->killed_at_ns) / 1000;
    broker_box_stats(box, &news.stats);
    broker_tell(broker, &news, NULL, 0);
}

void broker_take_word(struct broker *broker, uint32_t id, bool late)
{
    struct broker_box *box = &broker->box[id];
    bool building = box->stage < BROKER_FORKING;
    enum box_step step = broker_box_hear(broker, id, late);
    if (step)
        broker_tell_failure(broker, id, step);
    else if (box->stage == BROKER_STILL && building)
        tell_ready(broker, id);
    else if (box->stage == BROKER_STILL)
        tell_started(broker, id);
    broker_tell_if_empty(broker, box);
}

/* Is the pid of an ordered fork or copy still unknown? */
static bool awaits_names(const struct broker *broker)
{
    bool awaits = false;
    for (int i = 0; i < BOX_ZYGOTES_MAX; i++)
        awaits |= broker->zygote[i].answered != broker->zygote[i].ordered;
    for (int i = 0; i < BOX_MAX; i++)
        awaits |= broker->box[i].used &&
                  broker->box[i].keep.answered != broker->box[i].keep.ordered;
    return awaits;
}

void broker_recall_death(struct broker *broker, pid_t pid)
{
    for (int i = 0; pid > 0 && i < BROKER_DEAD; i++) {
        const struct broker_dead dead = broker->dead[i];
        if (dead.pid != pid)
            continue;
        broker->dead[i].pid = 0;
        on_death(broker, pid, dead.status, &dead.used);
    }
    /* A pid may be reused: forget the dead once nobody waits. */
    if (!awaits_names(broker))
        memset(broker->dead, 0, sizeof broker->dead);
}

void broker_take_fork(struct broker *broker, uint32_t id, pid_t pid)
{
    enum box_step step = broker_box_forked(broker, id, pid);
    if (step)
        broker_tell_failure(broker, id, step);
    broker_recall_death(broker, pid);
    broker_tell_if_empty(broker, &broker->box[id]);
}

void broker_zygote_over(struct broker *broker, uint32_t id)
{
    struct broker_zygote *zygote = &broker->zygote[id];
    while (zygote->answered != zygote->ordered) {
        errno = ECHILD;
        broker_take_fork(broker, zygote->order[zygote->answered++ % BOX_MAX], -1);
    }
    broker_zygote_end(broker, id);
}

static struct broker_box *box_of(struct broker *broker, pid_t pid, pid_t **out_field)
{
    for (int i = 0; i < BOX_MAX; i++) {
        struct broker_box *box = &broker->box[i];
        pid_t *fields[] = { &box->init, &box->occupant, &box->porter, &box->sweep.pid,
                            &box->tally, &box->keep.keeper, &box->keep.warden };
        for (size_t j = 0; box->used && j < array_len(fields); j++) {
            if (*fields[j] == pid) {
                *out_field = fields[j];
                return box;
            }
        }
    }
    return NULL;
}

/* A process of no box died: a zygote, a parked copy (whose end the keeper has seen), or a fork with
 * an unknown box. */
static void on_other_death(struct broker *broker, pid_t pid, int status, const struct rusage *used)
{
    for (uint32_t i = 0; i < BOX_ZYGOTES_MAX; i++) {
        if (broker->zygote[i].used && broker->zygote[i].pid == pid) {
            bool retired = broker->zygote[i].retired;
            broker->zygote[i].pid = 0;
            broker_zygote_over(broker, i);
            errno = ECHILD;
            if (!retired)
                broker_tell_zygote_gone(broker, i, BOX_STEP_ZYGOTE);
            return;
        }
    }
    if (broker_keep_forget(broker, pid))
        return;
    if (awaits_names(broker))
        broker->dead[broker->dead_next++ % BROKER_DEAD] = (struct broker_dead){ pid, status,
                                                                                *used };
}

static void tell_exited(const struct broker *broker, struct broker_box *box, int status,
                        const struct rusage *used)
{
    struct box_news news = { .kind = BOX_NEWS_EXITED, .box = (uint32_t)(box - broker->box) };
    int64_t spent = (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000ll +
                    used->ru_utime.tv_usec + used->ru_stime.tv_usec - box->cpu_us_waited;
    box->cpu_us_seen = spent > box->cpu_us_seen ? spent : box->cpu_us_seen;
    if (box->session) /* the next occupant adds to it */
        box->cpu_us_waited = -box->cpu_us_seen;
    news.overdue = box->overdue;
    box->overdue = BOX_OVERDUE_NOT;
    if (status != 0 && broker_watch_wanted(box))
        broker_watch_glance(box, /* gone= */ true); /* its leftover processes are still there */
    news.by_signal = WIFSIGNALED(status);
    news.status = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    broker_box_stats(box, &news.stats);
    if (!box->releasing)
        broker_tell(broker, &news, NULL, 0);
}

static void on_death(struct broker *broker, pid_t pid, int status, const struct rusage *used)
{
    pid_t *field = NULL;
    struct broker_box *box = box_of(broker, pid, &field);
    if (!box) {
        on_other_death(broker, pid, status, used);
        return;
    }
    uint32_t id = (uint32_t)(box - broker->box);
    *field = 0;
    /* It may have reported, run and died since the last round. */
    while (field == &box->occupant && !box->releasing && box->stage > BROKER_FORKING)
        broker_take_word(broker, id, /* late= */ false);
    if (field == &box->occupant)
        tell_exited(broker, box, status, used);
    if (field == &box->tally)
        broker_watch_tallied(broker, id, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    if (field == &box->keep.keeper)
        broker_keep_over(broker, id);
    if (field == &box->keep.warden)
        broker_keep_kill(box); /* the keeper cannot work without its warden */
    if (field == &box->init)
        /* However init died: end the rest, too. */
        broker_box_kill(box, /* lift= */ true);
    broker_tell_if_empty(broker, box);
}

bool broker_reap(struct broker *broker)
{
    int status;
    struct rusage used;
    pid_t pid = wait4(-1, &status, WNOHANG | __WALL, &used);
    if (pid > 0)
        on_death(broker, pid, status, &used);
    return pid > 0;
}

void broker_take_oom(struct broker *broker, uint32_t id)
{
    struct broker_box *box = &broker->box[id];
    uint64_t times;
    if (!box->used)
        return; /* it ended in this same round */
    if (read(box->cgroup.oom_event, &times, sizeof times) == sizeof times) {
        box->oom_seen = true;
        broker_sweep_or_kill(broker, id);
    }
}
