/* The list of a tree: one line for each entry, in the order of a walk.
 *
 *   d MTIME PATH
 *   f HASH MODE SIZE MTIME PATH
 *   l PATH TARGET
 *
 * Bytes that are no printable ASCII, and '%', are written %XX, so that a line is one line. The
 * digest of the tree covers kind, path, hash, mode and target alone: two builds at different times
 * are equal, and so are trees that differ in compiled Python, which follows from its source. */
#include "image/store/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"

#define LINE_MAX_BYTES (7 * PATH_MAX) /* two escaped paths, and the numbers */

static void add_escaped(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if (c <= ' ' || c >= 127 || c == '%')
            buf_printf(out, "%%%02X", c);
        else
            buf_add(out, &text.at[i], 1);
    }
}

void image_item_write(const struct image_item *item, struct buf *out)
{
    if (item->kind == IMAGE_DIR)
        buf_printf(out, "d %lld ", (long long)item->mtime_s);
    else if (item->kind == IMAGE_FILE)
        buf_printf(out, "f %s %o %lld %lld ", item->hash, item->mode, (long long)item->size,
                   (long long)item->mtime_s);
    else
        buf_add_text(out, "l ");
    add_escaped(out, item->path);
    if (item->kind == IMAGE_LINK) {
        buf_add(out, " ", 1);
        add_escaped(out, item->target);
    }
    buf_add(out, "\n", 1);
}

static struct str next_word(struct str *rest)
{
    const char *space = rest->len > 0 ? memchr(rest->at, ' ', rest->len) : NULL;
    size_t len = space ? (size_t)(space - rest->at) : rest->len;
    struct str word = { rest->at, len };
    size_t used = len + (space != NULL);
    *rest = (struct str){ rest->at + used, rest->len - used };
    return word;
}

static bool read_number(struct str word, int64_t *out)
{
    uint64_t value;
    bool minus = word.len > 1 && word.at[0] == '-';
    if (!str_to_u64((struct str){ word.at + minus, word.len - minus }, &value) || value > INT64_MAX)
        return false;
    *out = minus ? -(int64_t)value : (int64_t)value;
    return true;
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Unescape into `room`, whose bytes never move: it has its whole maximum from the start. */
static bool read_text(struct str word, struct buf *room, struct str *out)
{
    size_t begin = room->len;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.at[i];
        if (c == '%') {
            int high = i + 2 < word.len ? digit_of(word.at[i + 1]) : -1;
            int low = i + 2 < word.len ? digit_of(word.at[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        if (c == 0 || buf_add(room, &c, 1) < 0)
            return false;
    }
    *out = (struct str){ room->at + begin, room->len - begin };
    return out->len > 0 && out->len < PATH_MAX && buf_add(room, "", 1) == 0;
}

int image_item_read(struct str line, struct buf *room, struct image_item *out)
{
    struct image_item item = { 0 };
    int64_t mode = 0;
    struct err ignored = ERR_INIT;
    struct str rest = line, kind = next_word(&rest);
    room->len = 0;
    if (!buf_room(room, room->max))
        return -1;
    if (str_is(kind, "d")) {
        item.kind = IMAGE_DIR;
        if (!read_number(next_word(&rest), &item.mtime_s))
            return -1;
    } else if (str_is(kind, "f")) {
        item.kind = IMAGE_FILE;
        struct str hash = next_word(&rest);
        if (hash.len != 64)
            return -1;
        memcpy(item.hash, hash.at, 64);
        if (!image_hex_valid(item.hash) || !read_number(next_word(&rest), &mode) ||
            !(mode == 444 || mode == 555) || !read_number(next_word(&rest), &item.size) ||
            item.size < 0 || !read_number(next_word(&rest), &item.mtime_s))
            return -1;
        item.mode = mode == 444 ? 0444 : 0555;
    } else if (str_is(kind, "l")) {
        item.kind = IMAGE_LINK;
    } else {
        return -1;
    }
    if (!read_text(next_word(&rest), room, &item.path) || image_path_check(item.path, &ignored) < 0)
        return -1;
    if (item.kind == IMAGE_LINK && !read_text(next_word(&rest), room, &item.target))
        return -1;
    if (rest.len > 0)
        return -1;
    *out = item;
    return 0;
}

static void add(struct hash *hash, struct str text)
{
    hash_add(hash, text.at, text.len);
    hash_add(hash, "", 1);
}

void image_item_hash(const struct image_item *item, struct hash *hash)
{
    static const struct str cache = { "__pycache__", 11 };
    const char *slash = memrchr(item->path.at, '/', item->path.len);
    struct str last = item->path, above = STR("");
    if (slash) {
        above = (struct str){ item->path.at, (size_t)(slash - item->path.at) };
        last = (struct str){ slash + 1, item->path.len - above.len - 1 };
    }
    if ((item->kind == IMAGE_DIR && str_eq(last, cache)) ||
        (item->kind == IMAGE_FILE && str_ends(last, STR(".pyc")) && str_ends(above, cache)))
        return;
    add(hash, item->kind == IMAGE_DIR ? STR("d") : item->kind == IMAGE_FILE ? STR("f") : STR("l"));
    add(hash, item->path);
    if (item->kind == IMAGE_FILE) {
        add(hash, str_of(item->hash));
        add(hash, item->mode == 0444 ? STR("444") : STR("555"));
    } else if (item->kind == IMAGE_LINK) {
        add(hash, item->target);
    }
}

int image_item_order(struct str a, struct str b)
{
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        int x = a.at[i] == '/' ? 0 : (unsigned char)a.at[i];
        int y = b.at[i] == '/' ? 0 : (unsigned char)b.at[i];
        if (x != y)
            return x - y;
    }
    return a.len == b.len ? 0 : a.len < b.len ? -1 : 1;
}

int image_list_open(const struct image_store *store, const char *hex, struct image_list *out,
                    struct err *err)
{
    char path[80];
    snprintf(path, sizeof path, "lists/%s", hex);
    *out = IMAGE_LIST_INIT;
    own_fd fd = openat(store->dirfd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    out->file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!out->file)
        return image_store_sys(err, "read the list of image 'sha256:%.12s'", hex);
    take_fd(&fd);
    hash_start(&out->hash);
    return 0;
}

void image_list_close(struct image_list *list)
{
    if (list->file)
        fclose(list->file);
    free(list->line);
    buf_done(&list->room);
    *list = IMAGE_LIST_INIT;
}

int image_list_next(struct image_list *list, struct image_item *out, struct err *err)
{
    if (!list->line)
        list->line = buf_alloc(LINE_MAX_BYTES);
    if (!fgets(list->line, LINE_MAX_BYTES, list->file))
        return ferror(list->file) ? err_sys(err, "read the list of an image") : 0;
    size_t len = strlen(list->line);
    hash_add(&list->hash, list->line, len);
    if (len < 1 || list->line[len - 1] != '\n' ||
        image_item_read((struct str){ list->line, len - 1 }, &list->room, out) < 0)
        return err_set(err, ERR_HOST, "the list of an image has a line that is none");
    return 1;
}
