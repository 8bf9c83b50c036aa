/* The thread of one replay. It has its own connection to the engine, and its own to the database:
 * nothing of the loop's is touched but the reply, which the loop reads after the wake-up. Runs in
 * the serve process. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/json.h"
#include "base/own.h"
#include "embed/client.h"
#include "replay/replay.h"
#include "serve/api/replays.h"
#include "store/db/db.h"

#define STACK_BYTES ((size_t)1 << 20)

static void wake(int fd)
{
    uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static json_t *do_replay(struct api_replay *replay, struct err *err)
{
    const struct db_options options = { .state_dir = replay->state_dir, .only_if_there = true };
    struct embed_link link = EMBED_LINK_INIT;
    if (embed_adopt(take_fd(&replay->engine), &link, err) < 0)
        return NULL;
    struct embed_client client = EMBED_CLIENT_INIT;
    embed_client_init(&client, &link);
    struct db *db = db_open(&options, err);
    const struct replay how = {
        .engine = &client, .db = db, .state_dir = replay->state_dir,
        .owner = replay->any_owner ? NULL : replay->owner, .secrets = replay->secrets,
        .any_image = replay->any_image, .cancel_fd = replay->cancel_fd,
        .no_session = replay->no_session.kind ? &replay->no_session : NULL,
    };
    json_t *report = db ? replay_run(&how, replay->run, err) : NULL;
    db_close(db);
    embed_client_close(&client);
    return report;
}

static void *live(void *user)
{
    struct api_replay *replay = user;
    int wake_fd = replay->all->wake_fd;
    replay->answer = do_replay(replay, &replay->err);
    __atomic_store_n(&replay->over, true, __ATOMIC_RELEASE);
    wake(wake_fd);
    return NULL;
}

int replays_start(struct api_replay *replay, struct err *err)
{
    pthread_attr_t how;
    sigset_t all, before;
    replay->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (replay->cancel_fd < 0)
        return err_sys(err, "make a replay's eventfd");
    sigfillset(&all);
    pthread_attr_init(&how);
    pthread_attr_setstacksize(&how, STACK_BYTES);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&replay->thread, &how, live, replay);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    replay->runs = rc == 0;
    if (rc == 0)
        return 0;
    err_set(err, ERR_BUSY, "no thread for a replay: %s", strerror(rc));
    err_hint(err, "try again later");
    return -1;
}

void replays_join(struct api_replay *replay)
{
    pthread_join(replay->thread, NULL);
    replay->runs = false;
    own_close_fd(&replay->cancel_fd);
    own_close_fd(&replay->engine);
    json_decref(take_ptr(replay->secrets)); /* never longer than needed */
}

void replays_cancel(struct api_replay *replay)
{
    if (replay->runs)
        wake(replay->cancel_fd);
}
