/* One build from order to image. Runs in the cli process after the drop of rights. It works in
 * a folder of the store's that the kernel's lock marks as in use: when this process dies, the next
 * command removes it. */
#include "image/make/make.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/own.h"
#include "image/make/job.h"

static int path_of(int fd, char *out, size_t room, struct err *err)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, out, room - 1);
    if (n < 0 || (size_t)n >= room - 1)
        return err_sys(err, "find the path of the build's folder");
    out[n] = '\0';
    return 0;
}

struct making {
    const struct make_order *order;
    struct make_job job;
    struct make_scene scene;
    struct image_entry from; /* name and manifest empty: the host */
    int tree_fd;
    char stage[PATH_MAX], tree[PATH_MAX];
    char *reads[MAKE_SETTINGS_READS + 2]; /* the settings', and the tree below */
};

/* The image below: what the lock says, or the order. */
static int find_base(struct image_store *store, struct making *m, struct err *err)
{
    const struct make_lock *lock = m->order->lock;
    const char *name = m->order->from;
    bool is_host = !name || strcmp(name, "host") == 0;
    if (lock && !name) {
        name = lock->base;
        is_host = strcmp(name, "host") == 0;
    }
    if (!is_host && image_store_find(store, name, &m->from, err) < 0)
        return -1;
    m->job.on_host = is_host || m->from.on_host;
    if (is_host)
        snprintf(m->job.lock.base, sizeof m->job.lock.base, "host");
    else
        snprintf(m->job.lock.base, sizeof m->job.lock.base, "sha256:%s", m->from.hex);
    if (lock && strcmp(lock->base, m->job.lock.base) != 0)
        return err_input(err, "base", lock->base, m->job.lock.base,
                         "the lock is for an image on '%s', not on '%s'", lock->base,
                         m->job.lock.base);
    if (is_host)
        return 0;
    char path[128];
    snprintf(path, sizeof path, "trees/%s", m->from.hex);
    m->tree_fd = openat(store->dirfd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (m->tree_fd < 0)
        return err_sys(err, "open the tree of image '%.64s'", name);
    m->job.tree_fd = m->tree_fd;
    m->job.tree = m->tree;
    if (path_of(m->tree_fd, m->tree, sizeof m->tree, err) < 0)
        return -1;
    return m->job.on_host ? 0 : image_look(m->tree_fd, &m->job.facts, err);
}

/* pip, npm and apt open the folder by its path. */
static int check_reach(int fd, const char *path, struct err *err)
{
    struct stat own, named;
    if (fstat(fd, &own) == 0 && stat(path, &named) == 0 && own.st_dev == named.st_dev &&
        own.st_ino == named.st_ino)
        return 0;
    err_set(err, ERR_HOST, "the folder of builds '%.200s' cannot be entered by uid %u", path,
            (unsigned)geteuid());
    err_hint(err, "set CUPEL_STATE to a folder below such that everybody may enter, as /var/lib/"
                  "cupel is");
    return -1;
}

static int set_scene(struct making *m, struct err *err)
{
    const struct make_order *order = m->order;
    struct make_settings *settings = order->settings;
    int stage;
    if (image_build_stage(m->job.build, &stage, err) < 0 ||
        path_of(stage, m->stage, sizeof m->stage, err) < 0 ||
        check_reach(stage, m->stage, err) < 0 ||
        make_settings_plant(settings, stage, m->stage, err) < 0)
        return -1;
    size_t count = 0;
    while (settings->reads[count]) {
        m->reads[count] = settings->reads[count];
        count++;
    }
    m->reads[count] = m->job.tree ? m->tree : NULL;
    m->scene = (struct make_scene){
        .stage_fd = stage,
        .stage = m->stage,
        .env = settings->env,
        .reads = m->reads,
        .due_ns = clock_now_ns() + order->timeout_s * CLOCK_S,
        .timeout_s = order->timeout_s,
        .stop_fd = order->stop_fd,
        .bytes_max = order->bytes_max,
        .said = order->said,
        .user = order->user,
    };
    return 0;
}

static int take_lock(struct making *m, struct err *err)
{
    const struct make_lock *lock = m->order->lock;
    struct make_lock *to = &m->job.lock;
    memcpy(to->python, lock->python, sizeof to->python);
    memcpy(to->platform, lock->platform, sizeof to->platform);
    for (enum make_kind kind = 0; kind < MAKE_KINDS; kind++)
        for (size_t i = 0; i < lock->counts[kind]; i++) {
            const struct make_locked *item = &lock->items[kind][i];
            if (make_lock_add(to, kind, str_of(item->name), str_of(item->version),
                              str_of(item->hash), err) < 0)
                return -1;
            struct make_locked *last = &to->items[kind][to->counts[kind] - 1];
            memcpy(last->alias, item->alias, sizeof last->alias);
        }
    return 0;
}

static int fill(struct make_job *job, struct err *err)
{
    static int (*const resolve[MAKE_KINDS])(struct make_job *, struct err *) = {
        make_pip_resolve, make_npm_resolve, make_apt_resolve
    };
    static int (*const add[MAKE_KINDS])(struct make_job *, struct err *) = {
        make_pip_add, make_npm_add, make_apt_add
    };
    /* Debian's first: what pip and npm add is over it. */
    static const enum make_kind order[MAKE_KINDS] = { MAKE_APT, MAKE_PIP, MAKE_NPM };
    if ((make_job_count(job, MAKE_PIP) || job->lock.counts[MAKE_PIP]) &&
        make_pip_facts(job, err) < 0)
        return -1;
    for (size_t i = 0; i < MAKE_KINDS; i++)
        if (make_job_count(job, order[i]) && resolve[order[i]](job, err) < 0)
            return -1;
    if (make_lock_sort(&job->lock, err) < 0)
        return -1;
    for (size_t i = 0; i < MAKE_KINDS; i++)
        if (add[order[i]](job, err) < 0)
            return -1;
    return 0;
}

static int finish(struct making *m, struct image_entry *out, struct err *err)
{
    own_json lock = make_lock_to_json(&m->job.lock);
    own_json env = json_deep_copy(json_object_get(m->from.manifest, "env"));
    own_json facts = json_pack("{s:s, s:s, s:O}", "source", "add", "base",
                               m->job.on_host ? "host" : "none", "lock", lock);
    if (!env)
        env = json_object();
    if (m->job.lock.counts[MAKE_NPM] > 0)
        json_object_set_new(env, "NODE_PATH", json_string("/" MAKE_MODULES));
    json_object_set(facts, "env", env);
    return image_build_finish(m->job.build, m->order->name, facts, out, err);
}

/* A Debian of its own. */
static int make_alone(struct image_store *store, struct making *m, struct image_entry *out,
                      struct err *err)
{
    own_json facts = NULL;
    if (image_build_start(store, NULL, &m->job.build, err) < 0 || set_scene(m, err) < 0 ||
        make_debian_add(&m->job, m->order->debian, &facts, err) < 0)
        return -1;
    json_object_set_new(facts, "base", json_string("none"));
    json_object_set_new(facts, "env", json_object());
    make_job_step(&m->job, "storing the image");
    return image_build_finish(m->job.build, m->order->name, facts, out, err);
}

static int make(struct image_store *store, struct making *m, struct image_entry *out,
                struct err *err)
{
    struct utsname host;
    if (uname(&host) < 0)
        return err_sys(err, "ask for this machine's name");
    snprintf(m->job.machine, sizeof m->job.machine, "%.15s", host.machine);
    if (m->order->debian)
        return make_alone(store, m, out, err);
    if (find_base(store, m, err) < 0 || (m->order->lock && take_lock(m, err) < 0))
        return -1;
    if (image_build_start(store, m->from.hex[0] ? &m->from : NULL, &m->job.build, err) < 0 ||
        set_scene(m, err) < 0 || fill(&m->job, err) < 0)
        return -1;
    make_job_step(&m->job, "storing the image");
    return finish(m, out, err);
}

int make_image(struct image_store *store, const struct make_order *order, struct image_entry *out,
               bool *out_bare, struct err *err)
{
    struct making m = { .order = order, .tree_fd = -1 };
    m.job.scene = &m.scene;
    m.job.wants = order->wants;
    m.job.locked = order->lock != NULL;
    m.job.tree_fd = -1;
    m.job.verbose = order->verbose;
    m.job.step = order->step;
    m.job.user = order->user;
    int rc = make(store, &m, out, err);
    *out_bare = m.scene.bare;
    image_build_close(m.job.build);
    make_lock_done(&m.job.lock);
    image_entry_done(&m.from);
    own_close_fd(&m.tree_fd);
    return rc;
}
