/* The shelf. Runs in the serve process; the functions *_work run in the thread of the errands. */
#include "store/shelf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/json.h"
#include "base/own.h"
#include "store/blobs.h"

#define LOOK_S 60
#define ABOUT_MAX ((size_t)16 << 20)

struct row {
    struct row *next; /* the latest first */
    char session[SHELF_ID_ROOM], owner[SHELF_ID_ROOM];
    int64_t ended_at, bytes;
};

struct shelf {
    struct shelf_options options;
    int dir, tmp;
    struct row *rows;
    unsigned count, puts;
    int64_t bytes;
    struct loop_timer timer;
    struct errand last;
};

struct shelf_put {
    struct shelf *shelf;
    struct errand errand;
    char session[SHELF_ID_ROOM], owner[SHELF_ID_ROOM];
    shelf_told *told;
    void *user;
    bool busy, freed, ended;
    int dir; /* -1: not made yet */
    int file;
    size_t number; /* of the open file */
    char *bytes;
    size_t len;
    int64_t size, ended_at;
    json_t *about;
    int error;
};

static bool is_session(const char *name)
{
    return strncmp(name, "s_", 2) == 0 && strlen(name) < SHELF_ID_ROOM &&
           strspn(name + 2, "0123456789abcdef") == strlen(name + 2);
}

static int open_dir(int dir, const char *name)
{
    return openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A folder without folders, and all that is in it. */
static void remove_dir(int above, const char *name)
{
    own_fd dir = open_dir(above, name);
    own_dirp reader = dir < 0 ? NULL : fdopendir(dup(dir));
    for (const struct dirent *entry; reader && (entry = readdir(reader));)
        unlinkat(dir, entry->d_name, 0);
    unlinkat(above, name, AT_REMOVEDIR);
}

/* --- rows --- */

static struct row **link_of(const struct shelf *shelf, const char *session)
{
    struct row **at = (struct row **)(uintptr_t)&shelf->rows;
    while (*at && strcmp((*at)->session, session) != 0)
        at = &(*at)->next;
    return at;
}

static void add_row(struct shelf *shelf, const char *session, const char *owner, int64_t ended_at,
                    int64_t bytes)
{
    struct row *row = buf_alloc_zero(1, sizeof *row);
    *row = (struct row){ .next = shelf->rows, .ended_at = ended_at, .bytes = bytes };
    snprintf(row->session, sizeof row->session, "%s", session);
    snprintf(row->owner, sizeof row->owner, "%s", owner);
    shelf->rows = row;
    shelf->count++;
    shelf->bytes += bytes;
    shelf->options.counted(shelf->options.user, owner, bytes);
}

struct removal {
    struct errand errand;
    struct shelf *shelf;
    char session[SHELF_ID_ROOM];
};

static void remove_work(struct errand *errand)
{
    struct removal *removal = loop_owner(errand, struct removal, errand);
    remove_dir(removal->shelf->dir, removal->session);
}

static void remove_done(struct errand *errand)
{
    free(loop_owner(errand, struct removal, errand));
}

/* Out of the list at once, off the disk soon. */
static void remove_row(struct shelf *shelf, struct row **at)
{
    struct row *row = *at;
    struct removal *removal = buf_alloc_zero(1, sizeof *removal);
    *at = row->next;
    shelf->count--;
    shelf->bytes -= row->bytes;
    shelf->options.counted(shelf->options.user, row->owner, -row->bytes);
    *removal = (struct removal){ .errand = { .work = remove_work, .done = remove_done },
                                 .shelf = shelf };
    memcpy(removal->session, row->session, sizeof removal->session);
    free(row);
    errands_add(shelf->options.errands, &removal->errand);
}

static int64_t bytes_of(const struct shelf *shelf, const char *owner)
{
    int64_t bytes = 0;
    for (const struct row *row = shelf->rows; row; row = row->next)
        bytes += strcmp(row->owner, owner) == 0 ? row->bytes : 0;
    return bytes;
}

/* The oldest of an owner; NULL: of the one that has most. */
static struct row **find_victim(struct shelf *shelf, const char *owner)
{
    struct row **found = NULL;
    int64_t most = -1;
    for (const struct row *row = shelf->rows; row && !owner; row = row->next)
        most = bytes_of(shelf, row->owner) > most ? bytes_of(shelf, row->owner) : most;
    for (struct row **at = &shelf->rows; *at; at = &(*at)->next)
        if (owner ? strcmp((*at)->owner, owner) == 0 : bytes_of(shelf, (*at)->owner) == most)
            found = at;
    return found;
}

static void make_room(struct shelf *shelf, const char *owner)
{
    struct row **victim;
    const struct shelf_options *most = &shelf->options;
    while (bytes_of(shelf, owner) > most->owner_bytes && (victim = find_victim(shelf, owner)))
        remove_row(shelf, victim);
    while ((shelf->bytes > most->bytes || shelf->count > most->sessions) &&
           (victim = find_victim(shelf, NULL)))
        remove_row(shelf, victim);
}

static void on_timer(struct loop_timer *timer)
{
    struct shelf *shelf = loop_owner(timer, struct shelf, timer);
    int64_t limit = time(NULL) - shelf->options.age_s;
    for (struct row **at = &shelf->rows; *at;) {
        if ((*at)->ended_at <= limit)
            remove_row(shelf, at);
        else
            at = &(*at)->next;
    }
    loop_set_timer(shelf->options.loop, &shelf->timer, clock_now_ns() + LOOK_S * CLOCK_S);
}

/* --- open and close --- */

static json_t *read_about(int dir, const char *session, struct err *err)
{
    own_fd inner = open_dir(dir, session);
    own_fd file = inner < 0 ? -1 : openat(inner, "about", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    own_buf text = BUF_INIT(ABOUT_MAX);
    if (file < 0 || buf_read(&text, file) < 0) {
        blobs_disk_err(err, errno, "read the list of a session's files");
        return NULL;
    }
    return json_read(buf_str(&text), ABOUT_MAX, err);
}

static int64_t sum_of(const json_t *about)
{
    const json_t *files = json_object_get(about, "files"), *file;
    int64_t sum = 0;
    size_t i;
    json_array_foreach (files, i, file)
        if (str_is(json_get_str(file, "type"), "file"))
            sum += json_integer_value(json_object_get(file, "size_bytes"));
    return sum;
}

static void load(struct shelf *shelf, const char *session)
{
    struct err err = ERR_INIT;
    own_json about = read_about(shelf->dir, session, &err);
    const char *owner = json_string_value(json_object_get(about, "owner"));
    int64_t ended_at = json_integer_value(json_object_get(about, "ended_at"));
    int64_t now = time(NULL);
    if (owner) /* a clock that was set back does not make them stay for ever */
        add_row(shelf, session, owner, ended_at < now ? ended_at : now, sum_of(about));
    else
        remove_dir(shelf->dir, session);
}

static void remove_leftovers(int tmp)
{
    own_dirp reader = fdopendir(dup(tmp));
    for (const struct dirent *entry; reader && (entry = readdir(reader));) {
        own_fd dir = is_session(entry->d_name) ? open_dir(tmp, entry->d_name) : -1;
        if (dir >= 0 && flock(dir, LOCK_EX | LOCK_NB) == 0)
            remove_dir(tmp, entry->d_name);
    }
}

static int make_dir(int dir, const char *name)
{
    return mkdirat(dir, name, 0700) < 0 && errno != EEXIST ? -1 : open_dir(dir, name);
}

struct shelf *shelf_open(const struct shelf_options *options, struct err *err)
{
    own_fd dir = make_dir(options->state_dir, "shelf");
    own_fd tmp = dir < 0 ? -1 : make_dir(dir, "tmp");
    if (tmp < 0) {
        blobs_disk_err(err, errno, "make the folder 'shelf' in the state folder");
        return NULL;
    }
    remove_leftovers(tmp);
    struct shelf *shelf = buf_alloc_zero(1, sizeof *shelf);
    *shelf = (struct shelf){ .options = *options, .dir = take_fd(&dir), .tmp = take_fd(&tmp) };
    own_dirp reader = fdopendir(dup(shelf->dir));
    for (const struct dirent *entry; reader && (entry = readdir(reader));)
        if (is_session(entry->d_name))
            load(shelf, entry->d_name);
    loop_due(&shelf->timer, on_timer);
    loop_set_timer(options->loop, &shelf->timer, 0);
    return shelf;
}

static void last_work(struct errand *errand)
{
    (void)errand;
}

static void last_done(struct errand *errand)
{
    struct shelf *shelf = loop_owner(errand, struct shelf, last);
    if (shelf->puts > 0) { /* the errands that drop them are in line by now */
        errands_add(shelf->options.errands, errand);
        return;
    }
    while (shelf->rows) {
        struct row *next = shelf->rows->next;
        free(shelf->rows);
        shelf->rows = next;
    }
    close(shelf->dir);
    close(shelf->tmp);
    free(shelf);
}

void shelf_close(struct shelf *shelf)
{
    if (!shelf)
        return;
    loop_set_timer(shelf->options.loop, &shelf->timer, LOOP_NEVER);
    shelf->last = (struct errand){ .work = last_work, .done = last_done };
    errands_add(shelf->options.errands, &shelf->last);
}

void shelf_set_age(struct shelf *shelf, int64_t age_s)
{
    shelf->options.age_s = age_s;
}

/* --- in --- */

struct shelf_put *shelf_put(struct shelf *shelf, const char *session, const char *owner,
                            shelf_told *told, void *user)
{
    struct shelf_put *put = buf_alloc_zero(1, sizeof *put);
    *put = (struct shelf_put){ .shelf = shelf, .told = told, .user = user, .dir = -1, .file = -1 };
    snprintf(put->session, sizeof put->session, "%s", session);
    snprintf(put->owner, sizeof put->owner, "%s", owner);
    shelf->puts++;
    return put;
}

static void drop_work(struct errand *errand)
{
    struct shelf_put *put = loop_owner(errand, struct shelf_put, errand);
    own_close_fd(&put->file);
    if (put->dir >= 0)
        remove_dir(put->shelf->tmp, put->session);
    own_close_fd(&put->dir);
}

static void drop_done(struct errand *errand)
{
    struct shelf_put *put = loop_owner(errand, struct shelf_put, errand);
    put->shelf->puts--;
    json_decref(put->about);
    free(put);
}

static void drop(struct shelf_put *put)
{
    put->errand = (struct errand){ .work = drop_work, .done = drop_done };
    errands_add(put->shelf->options.errands, &put->errand);
}

void shelf_put_free(struct shelf_put *put)
{
    if (!put)
        return;
    put->freed = true;
    if (!put->busy)
        drop(put);
}

static void put_done(struct errand *errand)
{
    struct shelf_put *put = loop_owner(errand, struct shelf_put, errand);
    struct err err = ERR_INIT;
    put->busy = false;
    if (put->ended && !put->error) {
        add_row(put->shelf, put->session, put->owner, put->ended_at, put->size);
        make_room(put->shelf, put->owner);
    }
    if (put->freed) {
        drop(put);
        return;
    }
    if (put->error)
        blobs_disk_err(&err, put->error, "keep the files of a session");
    put->told(put->user, &err);
}

static void begin(struct shelf_put *put, void (*work)(struct errand *errand))
{
    put->busy = true;
    put->errand = (struct errand){ .work = work, .done = put_done };
    errands_add(put->shelf->options.errands, &put->errand);
}

/* 0, or an errno. */
static int make_put(struct shelf_put *put)
{
    if (put->dir >= 0)
        return 0;
    put->dir = make_dir(put->shelf->tmp, put->session);
    return put->dir < 0 || flock(put->dir, LOCK_EX | LOCK_NB) < 0 ? errno : 0;
}

static int close_file(struct shelf_put *put)
{
    int why = put->file >= 0 && fsync(put->file) < 0 ? errno : 0;
    own_close_fd(&put->file);
    return why;
}

static void add_work(struct errand *errand)
{
    struct shelf_put *put = loop_owner(errand, struct shelf_put, errand);
    own_str bytes = take_ptr(put->bytes);
    char name[24];
    put->error = make_put(put);
    snprintf(name, sizeof name, "%zu", put->number);
    if (!put->error && put->file < 0) {
        put->file = openat(put->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        put->error = put->file < 0 ? errno : 0;
    }
    if (!put->error && io_write_all(put->file, bytes, put->len) < 0)
        put->error = errno;
}

static void add_next_work(struct errand *errand)
{
    struct shelf_put *put = loop_owner(errand, struct shelf_put, errand);
    put->error = close_file(put);
    if (!put->error)
        add_work(errand);
}

void shelf_put_add(struct shelf_put *put, size_t number, char *bytes, size_t len)
{
    bool same = number == put->number;
    put->number = number;
    put->bytes = bytes;
    put->len = len;
    begin(put, same ? add_work : add_next_work);
}

static int write_about(struct shelf_put *put)
{
    own_buf text = BUF_INIT(ABOUT_MAX);
    if (json_add(&text, put->about) < 0)
        return EFBIG;
    own_fd file = openat(put->dir, "about", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file < 0 || io_write_all(file, text.at, text.len) < 0 || fsync(file) < 0 ? errno : 0;
}

static void end_work(struct errand *errand)
{
    struct shelf_put *put = loop_owner(errand, struct shelf_put, errand);
    put->error = make_put(put);
    if (!put->error)
        put->error = close_file(put);
    if (!put->error)
        put->error = write_about(put);
    if (!put->error && (fsync(put->dir) < 0 ||
                        renameat(put->shelf->tmp, put->session, put->shelf->dir, put->session) < 0))
        put->error = errno;
    if (!put->error) {
        fsync(put->shelf->dir);
        own_close_fd(&put->dir);
    }
}

void shelf_put_end(struct shelf_put *put, json_t *about)
{
    put->ended = true;
    put->ended_at = time(NULL);
    put->size = sum_of(about);
    put->about = about;
    json_object_set_new(about, "owner", json_string(put->owner));
    json_object_set_new(about, "ended_at", json_integer(put->ended_at));
    begin(put, end_work);
}

/* --- out --- */

const char *shelf_owner(const struct shelf *shelf, const char *session)
{
    const struct row *row = *link_of(shelf, session);
    return row ? row->owner : NULL;
}

json_t *shelf_about(const struct shelf *shelf, const char *session, struct err *err)
{
    return read_about(shelf->dir, session, err);
}

int shelf_file(const struct shelf *shelf, const char *session, size_t number, uint64_t *out_size,
               struct err *err)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%s/%zu", session, number);
    own_fd fd = openat(shelf->dir, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return blobs_disk_err(err, errno, "open a kept file");
    *out_size = (uint64_t)st.st_size;
    return take_fd(&fd);
}

void shelf_remove(struct shelf *shelf, const char *session)
{
    struct row **at = link_of(shelf, session);
    if (*at)
        remove_row(shelf, at);
}
