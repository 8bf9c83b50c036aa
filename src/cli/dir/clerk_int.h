/* Shared by the two sides of the clerk's socket. */
#ifndef CLI_DIR_CLERK_INT_H
#define CLI_DIR_CLERK_INT_H

#include <stdint.h>

#include "base/attr.h"
#include "cli/dir/clerk.h"

#define CLERK_LIST_MAX (16u << 20) /* bytes of a packed list */

enum clerk_op {
    CLERK_MASKS = 1, CLERK_LOOK, CLERK_READ, CLERK_LIST,
    CLERK_WRITE, CLERK_LINK, CLERK_FOLDER, CLERK_REMOVE,
};

struct clerk_ask {
    uint32_t op;
    uint32_t mode;
    uint64_t size; /* of a file to write; its content comes as a descriptor */
    uint32_t path_len;
    char path[WALK_PATH_ROOM];
    char target[WALK_PATH_ROOM]; /* of a link */
};

struct clerk_answer {
    int32_t error; /* errno, or 0 */
    uint32_t kind, mode;
    uint64_t size;
    int64_t mtime_ns, ctime_ns;
    char target[WALK_PATH_ROOM];
    struct walk_facts facts;
    struct err err; /* of the walks */
}; /* with it: an opened file, or a list */

void clerk_serve(int sock, int root, bool writes, uid_t uid, gid_t gid) attr_noreturn;

#endif
