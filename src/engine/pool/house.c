/* Boxes and their tenants. Runs in the engine, in its loop. */
#include "engine/pool/house.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/own.h"

#define FDS_A_BOX 28 /* descriptors per box in the engine or the broker */
#define FDS_BESIDE 128
#define DOORS_PART 4 /* of the descriptors that we may open, one in four is for clients */
#define QUIET_NS INT64_C(2000000) /* without a vacated box, before waiting ones are killed */
#define DOOMED_MAX 8              /* boxes that may wait for that */
#define NEWS_A_TURN 64            /* of the loop */

static void break_down(struct house *house)
{
    if (house->source.fd < 0)
        return;
    loop_remove(house->loop, &house->source);
    if (house->on_broken)
        house->on_broken(house);
}

void house_break(struct house *house, const char *why)
{
    if (house->broken.kind == ERR_NONE)
        err_set(&house->broken, ERR_BUG, "%s", why);
    break_down(house);
}

int house_call(struct house *house, const struct box_call *call, const int *fds, size_t count)
{
    if (house->broken.kind != ERR_NONE)
        return -1;
    if (house_call_send(house, call, fds, count) == 0)
        return 0;
    break_down(house);
    return -1;
}

int house_ask(struct house *house, enum box_op op, uint32_t box)
{
    struct box_call call = { .op = op, .box = box };
    return house_call(house, &call, NULL, 0);
}

static void let_go(struct house *house, uint32_t box)
{
    own_close_fd(&house->box[box].hold);
}

static void release(struct house *house, uint32_t box)
{
    let_go(house, box);
    /* The box may have died by itself: another tenant may have its number now. */
    for (unsigned i = 0; i < house->doomed_count; i++) {
        if (house->doomed[i] == box)
            house->doomed[i--] = house->doomed[--house->doomed_count];
    }
    if (house->box[box].created)
        house_ask(house, BOX_OP_RELEASE, box);
    house->box[box].taken = false;
    house->box[box].tenant = NULL;
    house->taken--;
    if (house->on_released)
        house->on_released(house);
}

static void note(struct house *house, const struct box_news *news)
{
    uint32_t box = news->box;
    if (news->kind == BOX_NEWS_READY)
        house->box[box].created = true;
    if (news->kind == BOX_NEWS_FAILED && !house->box[box].created)
        house->box[box].empty = true; /* a box that failed to build leaves nothing */
    if (news->kind == BOX_NEWS_EMPTY)
        house->box[box].empty = true;
    struct house_tenant *tenant = house->box[box].tenant;
    if (tenant || !house->box[box].taken)
        return;
    /* Vacated: kill it if it is ready only now, release it if it is dead. */
    if (news->kind == BOX_NEWS_READY)
        house_ask(house, BOX_OP_KILL, box);
    else if (house->box[box].empty)
        release(house, box);
}

static void kill_doomed(struct loop_timer *timer)
{
    struct house *house = loop_owner(timer, struct house, quiet);
    loop_set_timer(house->loop, timer, LOOP_NEVER);
    for (unsigned i = 0; i < house->doomed_count; i++) {
        struct box_call kill = { .op = BOX_OP_KILL, .box = house->doomed[i], .kill.plain = 1 };
        house_call(house, &kill, NULL, 0);
        let_go(house, house->doomed[i]);
    }
    house->doomed_count = 0;
}

static void take_news(struct house *house)
{
    struct box_news news;
    int fds[BOX_NEWS_FDS];
    if (box_receive(&house->broker, &news, fds, &house->broken) < 0) {
        break_down(house);
        return;
    }
    bool zygote = news.kind == BOX_NEWS_ZYGOTE || news.kind == BOX_NEWS_ZYGOTE_GONE;
    struct house_tenant *tenant = zygote               ? house->zygote_tenant
                                  : news.box < BOX_MAX ? house->box[news.box].tenant
                                                       : NULL;
    if (!zygote && news.box < BOX_MAX)
        note(house, &news);
    if (tenant)
        tenant->news(tenant, &news, fds);
    for (int i = 0; i < BOX_NEWS_FDS; i++)
        own_close_fd(&fds[i]);
}

/* Take all news before the timers are looked at: a loop that was late must not blame a limit for
 * what ended before it. */
static void on_news(struct loop_source *source, uint32_t events)
{
    struct house *house = loop_owner(source, struct house, source);
    struct pollfd more = { .events = POLLIN };
    int count = 0;
    if (events & EPOLLOUT && house_calls_send(house) < 0) {
        break_down(house);
        return;
    }
    if (!(events & ~(uint32_t)EPOLLOUT))
        return;
    do {
        take_news(house);
        more.fd = source->fd;
    } while (++count < NEWS_A_TURN && poll(&more, 1, 0) == 1);
}

int house_open(struct house *house, struct loop *loop)
{
    struct rlimit files;
    house->loop = loop;
    house->calls_end = &house->calls;
    loop_due(&house->quiet, kill_doomed);
    house->limit = BOX_MAX;
    for (uint32_t i = 0; i < BOX_MAX; i++)
        house->box[i].hold = -1;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
        rlim_t most = files.rlim_max - files.rlim_max / DOORS_PART;
        if (most < FDS_BESIDE + (rlim_t)BOX_MAX * FDS_A_BOX)
            house->limit = most < FDS_BESIDE + FDS_A_BOX
                               ? 1
                               : (uint32_t)((most - FDS_BESIDE) / FDS_A_BOX);
    }
    house->source = (struct loop_source){ .fd = house->broker.sock,
                                          .ready = LOOP_HANDLER(on_news) };
    return loop_add(loop, &house->source, EPOLLIN);
}

void house_close(struct house *house)
{
    for (uint32_t i = 0; house->loop && i < BOX_MAX; i++)
        let_go(house, i);
    house->on_broken = house->on_released = NULL;
    if (house->loop)
        loop_remove(house->loop, &house->source);
    house_calls_done(house);
    box_broker_close(&house->broker);
}

uint32_t house_take(struct house *house, struct house_tenant *tenant)
{
    if (house->taken >= house->limit || house->broken.kind != ERR_NONE)
        return HOUSE_NOBODY;
    /* Round robin, so that late news of an old box does not meet a new one. */
    while (house->box[house->next % BOX_MAX].taken)
        house->next++;
    uint32_t box = house->next++ % BOX_MAX;
    house->box[box].tenant = tenant;
    house->box[box].taken = true;
    house->box[box].created = house->box[box].empty = false;
    house->taken++;
    return box;
}

uint32_t house_take_attached(struct house *house, struct house_tenant *tenant)
{
    if (house->box[BOX_ATTACHED].taken)
        return HOUSE_NOBODY;
    uint32_t next = house->next;
    house->next = BOX_ATTACHED;
    uint32_t box = house_take(house, tenant);
    house->next = next;
    return box;
}

void house_hand_over(struct house *house, uint32_t box, struct house_tenant *tenant)
{
    house->box[box].tenant = tenant;
}

void house_vacate(struct house *house, uint32_t box, bool clean, int hold)
{
    due_set(house->broker.due, box, 0, 0);
    house->box[box].tenant = NULL;
    house->box[box].hold = hold;
    if (house->box[box].empty) {
        release(house, box);
    } else if (house->box[box].created && clean) {
        house->doomed[house->doomed_count++] = box;
        if (house->doomed_count >= DOOMED_MAX)
            kill_doomed(&house->quiet);
        else
            loop_set_timer(house->loop, &house->quiet, clock_now_ns() + QUIET_NS);
    } else if (house->box[box].created) {
        house_ask(house, BOX_OP_KILL, box);
    }
    /* Else it is being built: READY or FAILED will come. */
}

int house_open_channel(int ours[BOX_CHANNEL], int theirs[BOX_CHANNEL])
{
    int words[2] = { -1, -1 }, requests[2] = { -1, -1 };
    if (pipe2(words, O_CLOEXEC) < 0 || pipe2(requests, O_CLOEXEC) < 0 ||
        fcntl(words[0], F_SETFL, O_NONBLOCK) < 0 || fcntl(requests[1], F_SETFL, O_NONBLOCK) < 0) {
        for (int i = 0; i < 2; i++) {
            own_close_fd(&words[i]);
            own_close_fd(&requests[i]);
        }
        return -1;
    }
    ours[BOX_WORDS] = words[0];
    theirs[BOX_WORDS] = words[1];
    ours[BOX_REQUESTS] = requests[1];
    theirs[BOX_REQUESTS] = requests[0];
    return 0;
}
