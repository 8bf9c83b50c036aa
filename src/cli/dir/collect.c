/* From a run's layer to a set of changes. Runs in the cli process after the drop of rights; the
 * clerk looks at the folder. Names and contents come from the box: they are compared, summed and
 * stored, never interpreted. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/own.h"
#include "cli/dir/folder.h"
#include "folder/sets.h"

#define SUM_MAX (1u << 30) /* bytes of originals that are summed; later ones have their times */
#define LIST_MAX (16u << 20)

struct collect {
    struct cli_folder *folder;
    const struct result *result;
    struct changes set;
    struct sets_new shelf;
    uint64_t summed;
    int numbers;
};

static struct str path_of(const struct result_layer *entry)
{
    return (struct str){ entry->path, entry->path_len };
}

/* Was it hidden from the code? Then the code cannot have removed it. */
static bool is_hidden(const struct cli_folder *folder, struct str path)
{
    struct str list = buf_str(&folder->masks), mask;
    for (int kind; (kind = walk_next(&list, &mask));) {
        if (path.len >= mask.len && memcmp(path.at, mask.at, mask.len) == 0 &&
            (path.len == mask.len || path.at[mask.len] == '/'))
            return true;
    }
    return false;
}

static int by_path(const void *a, const void *b)
{
    const struct result_layer *x = a, *y = b;
    size_t len = x->path_len < y->path_len ? x->path_len : y->path_len;
    int order = memcmp(x->path, y->path, len);
    return order ? order : (x->path_len > y->path_len) - (x->path_len < y->path_len);
}

static bool is_in_layer(const struct collect *c, struct str path)
{
    const struct result_layer key = { .path = (char *)(uintptr_t)path.at, .path_len = path.len };
    return c->result->layer_count &&
           bsearch(&key, c->result->layer, c->result->layer_count, sizeof key, by_path);
}

static int sum_of(int fd, char out[HASH_HEX_ROOM])
{
    static char part[1 << 16];
    struct hash hash;
    hash_start(&hash);
    for (ssize_t n; (n = read(fd, part, sizeof part)) != 0;) {
        if (n < 0)
            return -1;
        hash_add(&hash, part, (size_t)n);
    }
    hash_end_hex(&hash, out);
    return 0;
}

/* Looks at the entry of the folder, with the sum of a file. */
static int look(struct collect *c, struct str path, struct change *change, struct err *err)
{
    struct change_entry *was = &change->was;
    if (clerk_look(&c->folder->clerk, path, was, err) < 0)
        return -1;
    bool dated = was->kind == CHANGE_FILE || was->kind == CHANGE_LINK;
    change->moved = dated && was->ctime_ns >= c->folder->began_ns;
    if (was->kind != CHANGE_FILE || was->size > SUM_MAX - c->summed)
        return 0;
    struct err why = ERR_INIT;
    own_fd fd = -1;
    if (clerk_read(&c->folder->clerk, path, &fd, &why) < 0)
        return 0; /* unreadable to its owner: its times must do */
    c->summed += was->size;
    if (sum_of(fd, was->sum) < 0)
        was->sum[0] = 0;
    return 0;
}

/* Everything below a folder that the code no longer saw. */
static int add_gone_below(struct collect *c, struct str path, struct err *err)
{
    own_buf names = BUF_INIT(LIST_MAX);
    if (clerk_list(&c->folder->clerk, path, &names, err) < 0)
        return -1;
    struct str list = buf_str(&names), name;
    while (walk_next(&list, &name)) {
        if (is_hidden(c->folder, name) || is_in_layer(c, name))
            continue;
        if (c->set.count >= CHANGES_MAX)
            return err_set(err, ERR_LIMIT, "the code removed more than %d files", CHANGES_MAX);
        if (look(c, name, changes_add(&c->set, name), err) < 0)
            return -1;
    }
    return 0;
}

static int store_content(struct collect *c, const struct result_layer *entry, struct change *change,
                         struct err *err)
{
    change->number = c->numbers++;
    return sets_add(&c->shelf, change->number, (struct str){ entry->content, entry->size_bytes },
                    err);
}

static void fill_is(const struct result_layer *entry, struct change *change)
{
    struct change_entry *is = &change->is;
    bool dir = entry->kind == RESULT_LAYER_DIR || entry->kind == RESULT_LAYER_FRESH;
    is->mode = entry->mode & 0777;
    if (entry->kind == RESULT_LAYER_FILE) {
        is->kind = CHANGE_FILE;
        is->size = entry->size_bytes;
        memcpy(is->sum, entry->sha256, sizeof is->sum);
    } else if (entry->kind == RESULT_LAYER_LINK) {
        is->kind = CHANGE_LINK;
        is->target = buf_strdup((struct str){ entry->content, strlen(entry->content) });
    } else if (dir) {
        is->kind = CHANGE_FOLDER;
    }
}

static void forget_last(struct changes *set)
{
    struct change *change = &set->at[--set->count];
    free(change->path);
    free(change->was.target);
    free(change->is.target);
}

/* Does the layer's entry show nothing of the folder's one below it? */
static bool covers(const struct result_layer *entry)
{
    return entry->kind != RESULT_LAYER_DIR;
}

static int add_entry(struct collect *c, const struct result_layer *entry, struct err *err)
{
    struct str path = path_of(entry);
    if (!changes_path_is_clean(path) || is_hidden(c->folder, path)) {
        changes_skip(&c->set, path, "not a name that can be brought back");
        return 0;
    }
    if (c->set.count >= CHANGES_MAX)
        return err_set(err, ERR_LIMIT, "the code made more than %d changes", CHANGES_MAX);
    struct change *change = changes_add(&c->set, path);
    if (look(c, path, change, err) < 0)
        return -1;
    fill_is(entry, change);
    change->was.mode &= 0777;
    bool was_folder = change->was.kind == CHANGE_FOLDER;
    if (change_entry_same(&change->was, &change->is)) {
        forget_last(&c->set);
    } else if (change->is.kind == CHANGE_FILE && store_content(c, entry, change, err) < 0) {
        return -1;
    }
    return was_folder && covers(entry) ? add_gone_below(c, path, err) : 0;
}

/* A folder that covers another, and the one inside it, both tell what is gone. */
static void drop_doubles(struct changes *set)
{
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (kept > 0 && str_eq(change_path(&set->at[kept - 1]), change_path(&set->at[i]))) {
            free(set->at[i].path);
            free(set->at[i].was.target);
            free(set->at[i].is.target);
        } else {
            set->at[kept++] = set->at[i];
        }
    }
    set->count = kept;
}

static int collect(struct collect *c, struct err *err)
{
    const struct result *result = c->result;
    for (size_t i = 0; i < result->layer_count; i++)
        if (add_entry(c, &result->layer[i], err) < 0)
            return -1;
    for (size_t i = 0; i < result->skipped_count; i++) {
        struct str path = { result->skipped[i].path, result->skipped[i].path_len };
        changes_skip(&c->set, path, result->skipped[i].reason);
    }
    c->set.cut = result->layer_cut;
    changes_sort(&c->set);
    drop_doubles(&c->set);
    return sets_end(&c->shelf, &c->set, err);
}

int cli_folder_collect(struct cli_folder *folder, const struct result *result, size_t *out_count,
                       struct err *err)
{
    struct collect c = { .folder = folder, .result = result, .set = CHANGES_INIT,
                         .shelf = SETS_NEW_INIT };
    memcpy(c.set.run, result->run, sizeof c.set.run);
    c.set.folder = buf_strdup(str_of(folder->path));
    c.set.began_ns = folder->began_ns;
    c.set.device = folder->device;
    c.set.inode = folder->inode;
    int rc = sets_begin(folder->shelf, &c.shelf, err) < 0 ? -1 : collect(&c, err);
    *out_count = c.set.count;
    sets_drop(&c.shelf);
    changes_done(&c.set);
    return rc;
}
