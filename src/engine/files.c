/* Files in and out. The engine asks, the porter (no more power than the box)
 * opens; names and contents are the box's own and stay bytes. What comes out is
 * sorted by name, so that the same run gives the same list. */
#include "engine/files.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/own.h"
#include "box/mutate.h"
#include "box/proto.h"

#define PATIENCE_MS 20000

static int ask(int sock, const struct box_porter_call *call, int fd, struct err *err)
{
    if (io_send(sock, call, sizeof *call, &fd, fd >= 0 ? 1 : 0) < 0)
        return err_set(err, ERR_BUG, "the porter is gone: %s", strerror(errno));
    return 0;
}

static int hear(int sock, struct box_porter_answer *word, int *fd, struct err *err)
{
    struct pollfd wait = { .fd = sock, .events = POLLIN };
    size_t fds = 0;
    int ready;
    do {
        ready = poll(&wait, 1, PATIENCE_MS);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0)
        return err_set(err, ERR_BUG, "the porter does not answer");
    int got = io_recv(sock, word, sizeof *word, fd, fd ? 1 : 0, &fds);
    if (got != 1 || word->path_len >= sizeof word->path)
        return err_set(err, ERR_BUG, "the porter is gone");
    return 0;
}

static int put_one(int sock, const struct request_file *file, size_t index, struct err *err)
{
    struct box_porter_call call = { .op = BOX_PORTER_PUT, .readonly = file->readonly,
                                    .size = file->data.len };
    struct box_porter_answer word;
    char field[48];
    own_fd content = io_sealed_memfd("input", file->data.at, file->data.len, 0);
    if (content < 0)
        return err_sys(err, "make a memory file for '%s'", file->path);
    call.path_len = (uint32_t)strlen(file->path);
    memcpy(call.path, file->path, call.path_len);
    if (ask(sock, &call, content, err) < 0 || hear(sock, &word, NULL, err) < 0)
        return -1;
    if (word.error == 0)
        return 0;
    snprintf(field, sizeof field, "files[%zu]", index);
    err_input(err, field, NULL, "limits.disk_bytes", "cannot place '%s' in the box: %s", file->path,
              strerror(word.error));
    if (word.error == ENOSPC)
        err_hint(err, "raise limits.disk_bytes and limits.memory_bytes, or send less");
    return -1;
}

int files_put(int sock, const struct request *request, struct err *err)
{
    for (size_t i = 0; i < request->file_count; i++) {
        if (put_one(sock, &request->files[i], i, err) < 0)
            return -1;
    }
    return 0;
}

struct entry {
    char *path;
    size_t len;
    uint32_t type;
    uint64_t size;
};

struct listing {
    struct entry *at;
    size_t count, room;
    uint64_t cut;
};

static void listing_done(struct listing *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->at[i].path);
    free(list->at);
}

static int by_path(const void *a, const void *b)
{
    const struct entry *left = a, *right = b;
    size_t len = left->len < right->len ? left->len : right->len;
    int order = memcmp(left->path, right->path, len);
    return order ? order : (left->len > right->len) - (left->len < right->len);
}

static int read_listing(int sock, struct listing *list, struct err *err)
{
    struct box_porter_call call = { .op = BOX_PORTER_LIST };
    struct box_porter_answer word;
    if (ask(sock, &call, -1, err) < 0)
        return -1;
    for (;;) {
        if (hear(sock, &word, NULL, err) < 0)
            return -1;
        if (word.last)
            break;
        if (word.type == BOX_ENTRY_DIR)
            continue;
        if (list->count == list->room) {
            size_t room = list->room ? list->room * 2 : 64;
            struct entry *more = buf_alloc_zero(room, sizeof *more);
            if (list->count)
                memcpy(more, list->at, list->count * sizeof *more);
            free(list->at);
            list->at = more;
            list->room = room;
        }
        list->at[list->count++] = (struct entry){
            .path = buf_strdup((struct str){ word.path, word.path_len }),
            .len = word.path_len, .type = word.type, .size = word.size,
        };
    }
    list->cut = word.cut;
    if (list->count)
        qsort(list->at, list->count, sizeof *list->at, by_path);
    return 0;
}

/* The bytes of one file: what is really read, never more than asked for. */
static char *fetch(int fd, uint64_t size, uint64_t *out_len)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || (!mutate(REGULAR_FETCH) && !S_ISREG(st.st_mode)))
        return NULL;
    char *bytes = buf_alloc((size_t)size + 1);
    uint64_t got = 0;
    while (got < size) {
        ssize_t n = pread(fd, bytes + got, (size_t)(size - got), (off_t)got);
        if (n <= 0)
            break;
        got += (uint64_t)n;
    }
    bytes[got] = 0;
    *out_len = got;
    return bytes;
}

static bool is_unchanged_input(const struct request *request, const struct entry *entry,
                               struct str bytes)
{
    for (size_t i = 0; i < request->file_count; i++) {
        const struct request_file *file = &request->files[i];
        if (strlen(file->path) == entry->len && memcmp(file->path, entry->path, entry->len) == 0)
            return str_eq(file->data, bytes);
    }
    return false;
}

struct totals {
    uint64_t bytes;
    uint64_t files;
};

static int take_one(int sock, const struct request *request, const struct entry *entry,
                    struct totals *so_far, struct result *result, struct files_caps *caps,
                    struct err *err)
{
    struct str path = { entry->path, entry->len };
    const int64_t *limit = request->limits.value;
    struct box_porter_call call = { .op = BOX_PORTER_OPEN, .path_len = (uint32_t)entry->len };
    struct box_porter_answer word;
    char sum[HASH_HEX_ROOM];
    own_fd fd = -1;
    uint64_t len = 0;
    uint64_t room = (uint64_t)limit[LIMITS_ARTIFACT_BYTES] - so_far->bytes;
    /* An unchanged input counts for nothing, so it may be larger than the cap. */
    uint64_t most = room > (uint64_t)limit[LIMITS_INPUT] ? room : (uint64_t)limit[LIMITS_INPUT];
    if (mutate(ARTIFACT_BYTES))
        room = most = UINT64_MAX;
    if (entry->size > most) {
        caps->bytes_hit = true;
        result_add_skipped(result, path, "too large: over limits.artifact_bytes");
        return 0;
    }
    memcpy(call.path, entry->path, entry->len);
    if (ask(sock, &call, -1, err) < 0 || hear(sock, &word, &fd, err) < 0)
        return -1;
    own_str bytes = fd < 0 ? NULL : fetch(fd, entry->size, &len);
    if (!bytes) {
        result_add_skipped(result, path,
                           word.error == EACCES ? "not readable" : "cannot be opened");
        return 0;
    }
    if (is_unchanged_input(request, entry, (struct str){ bytes, (size_t)len }))
        return 0;
    if (len > room) {
        caps->bytes_hit = true;
        result_add_skipped(result, path, "too large: over limits.artifact_bytes");
        return 0;
    }
    if (!mutate(ARTIFACT_FILES) && so_far->files >= (uint64_t)limit[LIMITS_ARTIFACT_FILES]) {
        caps->count_hit = true;
        result_add_skipped(result, path, "too many: over limits.artifact_files");
        return 0;
    }
    hash_hex((struct str){ bytes, (size_t)len }, sum);
    so_far->bytes += len;
    so_far->files++;
    result_add_artifact(result, path, take_ptr(bytes), len, sum);
    return 0;
}

int files_collect(int sock, const struct request *request, struct result *result,
                  struct files_caps *out_caps, struct err *err)
{
    static const char *const not_files[] = { [BOX_ENTRY_LINK] = "not a regular file: a link",
                                             [BOX_ENTRY_OTHER] = "not a regular file" };
    struct listing list attr_cleanup(listing_done) = { 0 };
    struct totals so_far = { 0 };
    *out_caps = (struct files_caps){ 0 };
    if (read_listing(sock, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const struct entry *entry = &list.at[i];
        if (!mutate(REGULAR_LIST) && entry->type != BOX_ENTRY_FILE)
            result_add_skipped(result, (struct str){ entry->path, entry->len },
                               not_files[entry->type == BOX_ENTRY_LINK ? BOX_ENTRY_LINK
                                                                       : BOX_ENTRY_OTHER]);
        else if (take_one(sock, request, entry, &so_far, result, out_caps, err) < 0)
            return -1;
    }
    if (list.cut > 0) {
        out_caps->count_hit = true;
        result_add_skipped(result, STR_NONE, "not looked at: too many or too deep");
    }
    return 0;
}
