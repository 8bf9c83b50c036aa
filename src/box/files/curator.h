/* The curator: the resident porter's snapshots of /workspace, in a store that nobody
 * in the box can see. Snapshots are numbers below BOX_STATES.
 *
 * A file of a snapshot has the content, mode and mtime of the file that it was copied
 * from, and in its atime that file's key: seconds are the ctime in nanoseconds, and
 * nanoseconds are the inode's number. What has the same key, size, mode and mtime did
 * not change and is a hard link in the next snapshot. A ctime has the grain of a tick: a
 * file that is younger than CURATOR_SETTLED_NS when it is copied gets the key 0, and is
 * compared byte by byte the next time.
 * Kept as well: which names are one file, extended attributes that code can set, all bits
 * of a mode. Of a socket only its inode is noted: it stays if it is still there.
 * On tmpfs a change through a shared writable memory map does not change the ctime: where
 * there is such a map, files are compared.
 * Known limit: a map that is made, written and gone between two snapshots is not seen by the
 * second. */
#ifndef BOX_FILES_CURATOR_H
#define BOX_FILES_CURATOR_H

#include <stdbool.h>
#include <stdint.h>

#define CURATOR_ENTRIES_MAX 20000 /* of one snapshot: E2BIG */
#define CURATOR_DEPTH_MAX 64      /* directories in directories: ENAMETOOLONG */
#define CURATOR_SETTLED_NS 20000000
#define CURATOR_SNAP_MS 4000      /* for one snapshot: ETIMEDOUT */

/* `root` is /workspace, `store` the folder of the snapshots, `self` /proc/self/fd; all
 * opened as directories. */
void curator_open(int root, int store, int self);

struct curator_facts {
    uint32_t entries; /* in the snapshot */
    bool changed;     /* it is not what `base` is; times of directories do not count */
};
/* Each gives 0 or an errno. A snapshot that fails leaves no snapshot. `base` is the snapshot to
 * share files with, or BOX_STATES. `compare`: by bytes, whatever the keys say. A restore
 * always does. */
int curator_snap(uint32_t snapshot, uint32_t base, bool compare, struct curator_facts *out);
/* Make /workspace what the snapshot says; BOX_STATES: empty. Changed files keep their
 * inodes. *out_lost: bits of BOX_LOST, what is not back. A failure leaves /workspace
 * between the two. */
int curator_restore(uint32_t snapshot, uint32_t *out_lost);
int curator_forget(uint32_t snapshot);
/* Before the filter: hold what is beside /workspace. */
void curator_open_outside(void);
/* Has something there a ctime from then on? 0: nobody asks. */
bool curator_outside_changed(int64_t since_ns);
/* A snapshot to another curator, over a stream socket, and from one. */
int curator_send(uint32_t snapshot, int to);
int curator_receive(uint32_t snapshot, int from);

#endif
