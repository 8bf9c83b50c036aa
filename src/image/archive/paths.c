/* Nodes in one array, found by a hash of parent and name. */
#include "image/archive/paths.h"

#include "base/buf.h"
#include "image/archive/tarball.h"
#include "image/store/store.h"

#define NODES_MAX (2 * IMAGE_ENTRIES_MAX) /* with the folders that entries imply */
#define NAMES_MAX (UINT32_C(256) << 20)
#define BUCKETS_MIN 1024

struct node {
    uint32_t parent, child, next; /* 0: none; `next` of the same parent */
    uint32_t chain;               /* of the same bucket */
    uint32_t name, name_len;
    uint32_t target, target_len;
    uint32_t layer, opaque; /* layers; opaque: the one that hides what is below, or 0 */
    uint8_t kind;
    bool listed; /* among its parent's children, perhaps as PATHS_NONE */
};

struct paths {
    struct node *nodes; /* [0] stands for no node, [1] is the root */
    size_t count, room;
    uint32_t *buckets;
    size_t bucket_count; /* a power of two */
    struct buf names;
    uint32_t layer;
    uint64_t key; /* of the hash */
};

struct paths *paths_new(void)
{
    struct paths *paths = buf_alloc_zero(1, sizeof *paths);
    paths->room = BUCKETS_MIN;
    paths->nodes = buf_alloc_zero(paths->room, sizeof *paths->nodes);
    paths->bucket_count = BUCKETS_MIN;
    paths->buckets = buf_alloc_zero(paths->bucket_count, sizeof *paths->buckets);
    paths->names = BUF_INIT(NAMES_MAX);
    paths->nodes[1] = (struct node){ .kind = PATHS_DIR };
    paths->count = 2;
    /* The table's own address keeps an archive from choosing names of one bucket. */
    paths->key = (uint64_t)(uintptr_t)paths ^ ((uint64_t)(uintptr_t)paths->nodes << 20);
    return paths;
}

void paths_free(struct paths *paths)
{
    if (!paths)
        return;
    buf_done(&paths->names);
    free(paths->nodes);
    free(paths->buckets);
    free(paths);
}

void paths_next_layer(struct paths *paths)
{
    paths->layer++;
}

uint32_t paths_layer(const struct paths *paths)
{
    return paths->layer;
}

static size_t bucket_of(const struct paths *paths, uint32_t parent, struct str name)
{
    uint64_t hash = paths->key ^ (parent * UINT64_C(0x9e3779b97f4a7c15));
    for (size_t i = 0; i < name.len; i++) {
        hash = (hash ^ (unsigned char)name.at[i]) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 29;
    }
    return (size_t)(hash ^ hash >> 32) & (paths->bucket_count - 1);
}

static struct str name_of(const struct paths *paths, const struct node *node)
{
    return (struct str){ buf_str(&paths->names).at + node->name, node->name_len };
}

static uint32_t child_of(const struct paths *paths, uint32_t parent, struct str name)
{
    uint32_t at = paths->buckets[bucket_of(paths, parent, name)];
    while (at &&
           !(paths->nodes[at].parent == parent && str_eq(name_of(paths, &paths->nodes[at]), name)))
        at = paths->nodes[at].chain;
    return at;
}

static void grow(struct paths *paths)
{
    size_t room = 2 * paths->room;
    struct node *nodes = buf_alloc_zero(room, sizeof *nodes);
    memcpy(nodes, paths->nodes, paths->count * sizeof *nodes);
    free(paths->nodes);
    free(paths->buckets);
    paths->nodes = nodes;
    paths->room = room;
    paths->bucket_count = room;
    paths->buckets = buf_alloc_zero(room, sizeof *paths->buckets);
    for (uint32_t i = 2; i < paths->count; i++) {
        size_t bucket = bucket_of(paths, nodes[i].parent, name_of(paths, &nodes[i]));
        nodes[i].chain = paths->buckets[bucket];
        paths->buckets[bucket] = i;
    }
}

/* The child, which may be PATHS_NONE; 0: there is no room for one more. */
static uint32_t child_made(struct paths *paths, uint32_t parent, struct str name)
{
    uint32_t at = child_of(paths, parent, name);
    if (!at) {
        if (paths->count == NODES_MAX || paths->names.len + name.len > NAMES_MAX)
            return 0;
        if (paths->count == paths->room)
            grow(paths);
        at = (uint32_t)paths->count++;
        size_t bucket = bucket_of(paths, parent, name);
        paths->nodes[at] = (struct node){ .parent = parent,
                                          .chain = paths->buckets[bucket],
                                          .name = (uint32_t)paths->names.len,
                                          .name_len = (uint32_t)name.len };
        buf_add_str(&paths->names, name);
        paths->buckets[bucket] = at;
    }
    struct node *node = &paths->nodes[at];
    if (!node->listed) {
        node->listed = true;
        node->next = paths->nodes[parent].child;
        paths->nodes[parent].child = at;
    }
    return at;
}

static struct str next_part(struct str *path)
{
    const char *slash = memchr(path->at, '/', path->len);
    size_t len = slash ? (size_t)(slash - path->at) : path->len;
    struct str part = { path->at, len };
    path->at += len + (slash != NULL);
    path->len -= len + (slash != NULL);
    return part;
}

static int refuse_full(struct str path, struct err *err)
{
    return tarball_refuse(err, path, "is one entry too many: an image has at most %d",
                          IMAGE_ENTRIES_MAX);
}

/* A folder on the way. 1: it is there; 0: it is not, and is not made. */
static int step(struct paths *paths, uint32_t at, bool make, struct str path, struct err *err)
{
    struct node *node = &paths->nodes[at];
    switch ((enum paths_kind)node->kind) {
    case PATHS_LINK: return tarball_refuse(err, path, "leads through a link");
    case PATHS_FILE:
    case PATHS_SKIPPED: return tarball_refuse(err, path, "is below something that is no folder");
    case PATHS_NONE:
        if (!make)
            return 0;
        *node = (struct node){ .parent = node->parent, .next = node->next, .chain = node->chain,
                               .name = node->name, .name_len = node->name_len, .listed = true,
                               .kind = PATHS_DIR };
        break;
    case PATHS_DIR: break;
    }
    if (make)
        node->layer = paths->layer;
    return 1;
}

/* The node of a path: 0 if there is none. */
static int walk(struct paths *paths, struct str path, bool make, uint32_t *out, struct err *err)
{
    struct str rest = path;
    uint32_t at = 1;
    while (rest.len > 0) {
        struct str part = next_part(&rest);
        uint32_t above = at;
        at = make ? child_made(paths, above, part) : child_of(paths, above, part);
        if (!at && make)
            return refuse_full(path, err);
        if (!at || rest.len == 0)
            break;
        int rc = step(paths, at, make, path, err);
        if (rc < 0)
            return -1;
        if (rc == 0) {
            at = 0;
            break;
        }
    }
    *out = at;
    return 0;
}

int paths_find(struct paths *paths, struct str path, bool make, struct paths_at *out,
               struct err *err)
{
    uint32_t at = 0;
    if (walk(paths, path, make, &at, err) < 0)
        return -1;
    const struct node *node = &paths->nodes[at];
    *out = (struct paths_at){ .kind = (enum paths_kind)node->kind, .layer = node->layer };
    if (node->kind == PATHS_LINK)
        out->target = (struct str){ buf_str(&paths->names).at + node->target, node->target_len };
    return 0;
}

/* Everything below is gone, and no child stays listed: each node is paid for by its entry. */
static void forget_below(struct paths *paths, uint32_t at)
{
    uint32_t child = paths->nodes[at].child;
    paths->nodes[at].child = 0;
    while (child) {
        struct node *node = &paths->nodes[child];
        uint32_t next = node->next;
        node->kind = PATHS_NONE;
        node->listed = false;
        node->layer = node->opaque = 0;
        forget_below(paths, child);
        child = next;
    }
}

int paths_put(struct paths *paths, struct str path, enum paths_kind kind, struct str target,
              struct err *err)
{
    uint32_t at = 0;
    if (walk(paths, path, /* make= */ true, &at, err) < 0)
        return -1;
    struct node *node = &paths->nodes[at];
    if (kind != PATHS_DIR)
        forget_below(paths, at);
    if (node->kind != PATHS_DIR || kind != PATHS_DIR)
        node->opaque = 0;
    node->kind = (uint8_t)kind;
    node->layer = paths->layer;
    node->target_len = 0;
    if (kind == PATHS_LINK) {
        node->target = (uint32_t)paths->names.len;
        if (buf_add_str(&paths->names, target) < 0)
            return refuse_full(path, err);
        node->target_len = (uint32_t)target.len;
    }
    return 0;
}

void paths_remove(struct paths *paths, struct str path)
{
    struct err ignored = ERR_INIT;
    uint32_t at = 0;
    if (walk(paths, path, /* make= */ false, &at, &ignored) < 0 || at < 2)
        return;
    forget_below(paths, at);
    paths->nodes[at].kind = PATHS_NONE;
    paths->nodes[at].layer = paths->nodes[at].opaque = 0;
}

struct sweep {
    struct paths *paths;
    int (*each)(void *user, struct str path, struct err *err);
    void *user;
    struct buf path;
};

/* Below a folder of this layer. A folder that is opaque already was swept: all lower things below it
 * are gone, so that no node is visited twice. */
static int sweep_below(struct sweep *sweep, uint32_t at, struct err *err)
{
    struct paths *paths = sweep->paths;
    for (uint32_t child = paths->nodes[at].child; child; child = paths->nodes[child].next) {
        struct node *node = &paths->nodes[child];
        size_t len = sweep->path.len;
        bool older = node->layer < paths->layer;
        if (node->kind == PATHS_NONE ||
            (!older && (node->kind != PATHS_DIR || node->opaque == paths->layer)))
            continue;
        if ((len > 0 && buf_add(&sweep->path, "/", 1) < 0) ||
            buf_add_str(&sweep->path, name_of(paths, node)) < 0)
            return err_set(err, ERR_BUG, "a path of the tree is too long");
        int rc = older ? sweep->each(sweep->user, buf_str(&sweep->path), err)
                       : sweep_below(sweep, child, err);
        if (rc < 0)
            return -1;
        if (older) {
            forget_below(paths, child);
            node->kind = PATHS_NONE;
            node->layer = node->opaque = 0;
        }
        sweep->path.len = len;
    }
    return 0;
}

/* Is the folder, or one above it, opaque in this layer already? */
static bool is_swept(const struct paths *paths, uint32_t at)
{
    for (; at; at = paths->nodes[at].parent)
        if (paths->nodes[at].opaque == paths->layer)
            return true;
    return false;
}

int paths_opaque(struct paths *paths, struct str path,
                 int (*each)(void *user, struct str path, struct err *err), void *user,
                 struct err *err)
{
    struct sweep sweep = { paths, each, user, BUF_INIT(TARBALL_PATH_MAX + 1) };
    uint32_t at = 0;
    if (walk(paths, path, /* make= */ true, &at, err) < 0 || is_swept(paths, at))
        return err->kind == ERR_NONE ? 0 : -1;
    buf_add_str(&sweep.path, path);
    int rc = sweep_below(&sweep, at, err);
    buf_done(&sweep.path);
    paths->nodes[at].opaque = paths->layer;
    return rc;
}
