/* The tables of files with more than one name. In the porter alone; no heap. */
#include "box/files/curator_links.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/attr.h"
#include "base/own.h"
#include "box/files/tree.h"

#define TEXT_MAX (4u << 20) /* of all paths */

struct curator_links curator_by_here, curator_by_kept;
bool curator_has_links[BOX_STATES + 1];
static char text[TEXT_MAX];
static size_t text_len;

static void clear(struct curator_links *links)
{
    if (links->count > 0)
        memset(links, 0, sizeof *links);
}

void curator_links_clear(void)
{
    clear(&curator_by_here);
    clear(&curator_by_kept);
    text_len = 1;
}

/* The entry of `from`, or the free entry for it: there is always one. */
static struct curator_link *entry_of(struct curator_links *links, uint64_t from)
{
    size_t at = (size_t)(from * UINT64_C(0x9e3779b97f4a7c15) >> 32) % array_len(links->entry);
    while (links->entry[at].from && links->entry[at].from != from)
        at = (at + 1) % array_len(links->entry);
    return &links->entry[at];
}

struct curator_link *curator_links_find(struct curator_links *links, uint64_t from)
{
    struct curator_link *link = entry_of(links, from);
    return link->from ? link : NULL;
}

int curator_links_add(struct curator_links *links, uint64_t from, uint64_t to)
{
    if (links->count >= CURATOR_LINKS_MAX)
        return EMLINK;
    links->count++;
    *entry_of(links, from) = (struct curator_link){ .from = from, .to = to };
    return 0;
}

int curator_links_set_path(struct curator_link *link, const char *path)
{
    size_t len = strlen(path) + 1;
    if (len > sizeof text - text_len)
        return EMLINK;
    memcpy(text + text_len, path, len);
    link->path = (uint32_t)text_len;
    text_len += len;
    return 0;
}

const char *curator_links_path(const struct curator_link *link)
{
    return link->path ? text + link->path : NULL;
}

int curator_links_make(int top, const char *path, int dir, const char *name)
{
    static char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t len = slash ? (size_t)(slash - path) : 0;
    if (len >= sizeof folder)
        return ENAMETOOLONG;
    memcpy(folder, path, len);
    folder[len] = 0;
    own_fd parent = tree_open(top, len ? folder : ".", O_PATH | O_DIRECTORY, 0);
    if (parent < 0)
        return errno;
    return linkat(parent, slash ? slash + 1 : path, dir, name, 0) < 0 ? errno : 0;
}
