/* The curator: the resident porter's snapshots of /workspace, in a store that no process in the box
 * can see. Snapshots are numbers below BOX_STATES.
 *
 * A file of a snapshot has the content, mode and mtime of the original. Its atime holds the
 * original's key: seconds are the ctime in nanoseconds, nanoseconds are the inode's number. A file
 * with the same key, size, mode and mtime did not change and becomes a hard link in the next
 * snapshot. A ctime has the resolution of a tick: a file that is younger than CURATOR_SETTLED_NS
 * when it is copied gets the key 0, and the next snapshot compares its bytes. A snapshot also keeps
 * hard links, extended attributes that code can set, and all mode bits. It only notes the inode of
 * a socket: a restore keeps the socket if it still exists. On tmpfs a write through a shared memory
 * map does not change the ctime: while such a map exists, files are compared.
 * Known limit: a snapshot misses changes through a map that was made, written and unmapped since
 * the previous snapshot. */
#ifndef BOX_FILES_CURATOR_H
#define BOX_FILES_CURATOR_H

#include <stdbool.h>
#include <stdint.h>

#define CURATOR_ENTRIES_MAX 20000 /* of one snapshot: E2BIG */
#define CURATOR_DEPTH_MAX 64 /* directories in directories: ENAMETOOLONG */
#define CURATOR_SETTLED_NS 20000000
#define CURATOR_SNAP_MS 4000 /* for one snapshot: ETIMEDOUT */

/* `root` is /workspace, `store` the folder of the snapshots, `self` /proc/self/fd; all opened as
 * directories. */
void curator_open(int root, int store, int self);

struct curator_facts {
    uint32_t entries; /* in the snapshot */
    bool changed; /* it differs from `base`; times of directories do not count */
};
/* Each returns 0 or an errno. A failure leaves no snapshot. `base` is the snapshot to share files
 * with, or BOX_STATES. `compare`: compare bytes, not keys. A restore always does. */
int curator_snap(uint32_t snapshot, uint32_t base, bool compare, struct curator_facts *out);
/* Make /workspace equal to the snapshot; BOX_STATES: empty it. Changed files keep their inodes.
 * *out_lost: bits of BOX_LOST that are not restored. A failure leaves /workspace half restored. */
int curator_restore(uint32_t snapshot, uint32_t *out_lost);
int curator_forget(uint32_t snapshot);
/* Open the folders outside /workspace. Call before the filter. */
void curator_open_outside(void);
/* Has an entry there a ctime of since_ns or later? Always false for 0. */
bool curator_outside_changed(int64_t since_ns);
/* Send a snapshot to another curator over a stream socket, and receive one. */
int curator_send(uint32_t snapshot, int to);
int curator_receive(uint32_t snapshot, int from);

#endif
