/* See the header. */
#include "box_hall.h"

#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/io.h"
#include "base/own.h"
#include "check.h"

#define MIB (INT64_C(1) << 20)
#define WAIT_MS 20000
#define BUSYBOX "/bin/busybox"

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st, (void)kind, (void)ftw;
    return remove(path);
}

/* Of a test that failed: what it leaves would fail others. */
static char to_remove[sizeof((struct hall *)0)->root];
static pid_t maker;

static void clean(void)
{
    if (getpid() == maker && to_remove[0])
        nftw(to_remove, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void hall_begin(struct hall *hall, bool ordinary)
{
    const uid_t other = 61007;
    *hall = (struct hall){ .house = BOX_BROKER_INIT };
    signal(SIGPIPE, SIG_IGN);
    if (ordinary && geteuid() == 0 &&
        (setresgid(other, other, other) < 0 || setresuid(other, other, other) < 0 ||
         prctl(PR_SET_DUMPABLE, 1) < 0))
        check_failed(__FILE__, __LINE__, "cannot become an ordinary user");
    umask(022);
    snprintf(hall->root, sizeof hall->root, "/tmp/cupel-place-XXXXXX");
    CHECK(mkdtemp(hall->root) != NULL);
    memcpy(to_remove, hall->root, sizeof to_remove);
    maker = getpid();
    check_clean = clean;
    hall_dir(hall, "T/.");
    hall_attach(hall, "trees", BOX_ATTACH_IMAGES, /* writable= */ false);
}

void hall_end(struct hall *hall)
{
    for (size_t i = 0; i < hall->attach_count; i++)
        close(hall->attach[i].fd);
    box_broker_close(&hall->house);
    CHECK_INT(nftw(hall->root, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT), 0);
    to_remove[0] = 0;
}

const char *hall_path(const struct hall *hall, const char *path)
{
    static char full[8][512];
    static unsigned next;
    char *out = full[next++ % array_len(full)];
    bool in_tree = strncmp(path, "T/", 2) == 0;
    snprintf(out, sizeof full[0], "%s/%s%s", hall->root, in_tree ? "trees/" HALL_HEX "/" : "",
             path + (in_tree ? 2 : 0));
    char above[512];
    for (char *slash = out + strlen(hall->root) + 1; (slash = strchr(slash, '/')); slash++) {
        snprintf(above, sizeof above, "%.*s", (int)(slash - out), out);
        mkdir(above, 0755);
    }
    return out;
}

void hall_dir(const struct hall *hall, const char *path)
{
    mkdir(hall_path(hall, path), 0755);
}

void hall_file(const struct hall *hall, const char *path, const char *text, int mode)
{
    const char *full = hall_path(hall, path);
    own_fd fd = open(full, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && io_write_all(fd, text, strlen(text)) == 0 && fchmod(fd, (mode_t)mode) == 0);
}

void hall_link(const struct hall *hall, const char *target, const char *path)
{
    CHECK_INT(symlink(target, hall_path(hall, path)), 0);
}

bool hall_busybox(const struct hall *hall)
{
    static char bytes[8 << 20];
    own_fd from = open(BUSYBOX, O_RDONLY | O_CLOEXEC);
    ssize_t n = from < 0 ? -1 : read(from, bytes, sizeof bytes);
    if (n <= 0) {
        printf("# skipped: no " BUSYBOX "\n");
        return false;
    }
    own_fd to = open(hall_path(hall, "T/bin/busybox"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                     0755);
    CHECK(to >= 0 && io_write_all(to, bytes, (size_t)n) == 0);
    hall_link(hall, "busybox", "T/bin/sh");
    return true;
}

void hall_attach(struct hall *hall, const char *path, enum box_attach_kind kind, bool writable)
{
    int fd = open(hall_path(hall, path), O_PATH | O_CLOEXEC);
    CHECK(fd >= 0);
    hall->attach[hall->attach_count++] = (struct box_attach){ fd, kind, writable };
}

bool hall_open(struct hall *hall)
{
    struct err err = ERR_INIT;
    if (box_broker_open(&hall->house, hall->attach, hall->attach_count, &err) == 0)
        return true;
    if (err.kind != ERR_HOST)
        check_failed(__FILE__, __LINE__, "%s", err.text);
    printf("# skipped: %s\n", err.text);
    hall_end(hall);
    return false;
}

struct box_image hall_image(const char *hex, bool on_host)
{
    struct box_image image = { .on_host = on_host, .present = 1 };
    snprintf(image.hex, sizeof image.hex, "%s", hex);
    return image;
}

static struct box_news hear(const struct hall *hall, int fds[BOX_NEWS_FDS])
{
    struct err err = ERR_INIT;
    struct box_news news;
    struct pollfd ready = { .fd = hall->house.sock, .events = POLLIN };
    CHECK_INT(poll(&ready, 1, WAIT_MS), 1);
    if (box_receive(&hall->house, &news, fds, &err) < 0)
        check_failed(__FILE__, __LINE__, "%s", err.text);
    return news;
}

static int exec_block(const char *const *argv, uint32_t argc)
{
    struct box_exec_head head = { .magic = BOX_EXEC_MAGIC, .argc = argc };
    int fd = memfd_create("exec", MFD_CLOEXEC);
    for (uint32_t i = 0; i < argc; i++)
        head.bytes += (uint32_t)strlen(argv[i]) + 1;
    CHECK(fd >= 0 && io_write_all(fd, &head, sizeof head) == 0);
    for (uint32_t i = 0; i < argc; i++)
        CHECK_INT(io_write_all(fd, argv[i], strlen(argv[i]) + 1), 0);
    return fd;
}

static void send_call(const struct hall *hall, const struct box_call *call, const int *fds,
                      size_t count)
{
    struct err err = ERR_INIT;
    CHECK_INT(box_send(&hall->house, call, fds, count, &err), 0);
}

static void read_all(int fd, char *out, size_t room)
{
    size_t len = 0;
    for (ssize_t n = 1; n > 0 && len + 1 < room; len += n > 0 ? (size_t)n : 0)
        n = read(fd, out + len, room - 1 - len);
    out[len] = 0;
}

int hall_porter(const struct hall *hall, uint32_t box, bool layer)
{
    int fds[BOX_NEWS_FDS];
    struct box_call call = { .op = BOX_OP_PORTER,
                             .box = box,
                             .porter = { .collect = 1, .layer = layer } };
    send_call(hall, &call, NULL, 0);
    struct box_news news = hear(hall, fds);
    if (news.kind != BOX_NEWS_PORTER)
        check_failed(__FILE__, __LINE__, "step %u: %s", news.step, strerror(news.error));
    return fds[0];
}

struct box_news hall_run(const struct hall *hall, const struct box_call *create, int places,
                         const char *command, char *out, size_t room)
{
    const char *const argv[] = { "/bin/sh", "-c", command };
    int fds[BOX_NEWS_FDS], words[2], requests[2];
    out[0] = 0;
    send_call(hall, create, &places, places >= 0);
    struct box_news news = hear(hall, fds);
    if (news.kind == BOX_NEWS_READY) {
        struct box_call start = {
            .op = BOX_OP_START,
            .box = create->box,
            .start = { .required = box_walls_required(), .cpu_s = 60, .open_files = 256 }
        };
        CHECK(pipe2(words, O_CLOEXEC) == 0 && pipe2(requests, O_CLOEXEC) == 0);
        int given[] = { exec_block(argv, 3), words[1], requests[0] };
        send_call(hall, &start, given, 3);
        for (int i = 0; i < 3; i++)
            close(given[i]);
        news = hear(hall, fds);
        if (news.kind == BOX_NEWS_STARTED) {
            close(fds[BOX_STARTED_IN]);
            read_all(fds[BOX_STARTED_OUT], out, room);
            size_t len = strlen(out);
            read_all(fds[BOX_STARTED_ERR], out + len, room - len);
            fds[BOX_STARTED_IN] = -1;
            own_fd reads attr_unused = words[0], writes attr_unused = requests[1];
            for (struct box_news end = news; end.kind != BOX_NEWS_EXITED;)
                end = hear(hall, (int[BOX_NEWS_FDS]){ 0 });
            send_call(hall, &(struct box_call){ .op = BOX_OP_KILL, .box = create->box }, NULL, 0);
            for (struct box_news end = news; end.kind != BOX_NEWS_EMPTY;)
                end = hear(hall, (int[BOX_NEWS_FDS]){ 0 });
        }
        if (news.kind == BOX_NEWS_STARTED && hall->look)
            hall->look(hall, create->box);
        for (int i = 0; news.kind == BOX_NEWS_STARTED && i < BOX_NEWS_FDS; i++)
            own_close_fd(&fds[i]);
        send_call(hall, &(struct box_call){ .op = BOX_OP_RELEASE, .box = create->box }, NULL, 0);
    }
    return news;
}

struct box_call hall_create(struct box_image image)
{
    struct box_call create = { .op = BOX_OP_CREATE, .box = 0 };
    create.create.memory_bytes = 256 * MIB;
    create.create.disk_bytes = 32 * MIB;
    create.create.disk_inodes = 4096;
    create.create.pids = 32;
    create.create.cpu_thousandths = 1000;
    create.create.image = image;
    return create;
}

const char *hall_say(const struct hall *hall, struct box_image image, const char *command)
{
    static char out[65536];
    struct box_call create = hall_create(image);
    struct box_news news = hall_run(hall, &create, -1, command, out, sizeof out);
    if (news.kind != BOX_NEWS_STARTED)
        check_failed(__FILE__, __LINE__, "step %u: %s", news.step, strerror(news.error));
    return out;
}
