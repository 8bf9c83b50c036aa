/* Working in a tree that others change at the same time: what the porter does with
 * names is done here. Every open is beneath a directory that is held open, without
 * links, magic links and mounts; what is changed by name takes one component, and
 * what is changed otherwise is held open first. No heap, no recursion. */
#ifndef BOX_FILES_TREE_H
#define BOX_FILES_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define TREE_NAME_ROOM 32 /* of a name that we make */

/* What stands for an absent descriptor's permissions: /proc/self/fd of this process, by
 * which a thing that is held as O_PATH can be opened or get another mode. */
void tree_set_self(int fds);

/* A path beneath a directory; the descriptor, or -1 with errno. */
int tree_open(int dir, const char *path, int flags, mode_t mode);
/* One thing, whatever it is, held so that it cannot be swapped: O_PATH. */
int tree_pin(int dir, const char *name, struct stat *out);
int tree_chmod(int pin, mode_t mode);
/* Give a file without a name, open for writing, a name that nobody has yet. */
int tree_link(int file, int dir, const char *name);
/* A file for reading or writing, though its owner took away the permission: the mode is
 * lent, and is in out->st_mode as it was. Anything but a regular file is EINVAL. */
int tree_open_file(int dir, const char *name, int flags, struct stat *out);
/* A directory for reading and changing, in the same way; give back its mode after. */
int tree_enter(int dir, const char *name, struct stat *out);
void tree_leave(int fd, const struct stat *was);

/* Reading a directory, from where its descriptor stands. */
struct tree_reader {
    int fd;
    long len, at;
    int error; /* after the last name */
    union {
        char bytes[4096];
        uint64_t align;
    } room;
};
void tree_read(struct tree_reader *reader, int fd);
/* The next name but "." and ".."; NULL after the last. Valid until the next one. */
const char *tree_next(struct tree_reader *reader);

/* From then on copying and comparing end with ETIMEDOUT, or a no; 0: they do not. */
void tree_set_deadline(int64_t ns);
bool tree_is_late(void);

/* Each gives 0 or an errno. */
/* Make `to`, which is empty, what `from` is in its first `size` bytes; holes stay holes. */
int tree_copy(int from, int to, off_t size);
/* The same where `to` has something: what differs is written, in place. */
int tree_mend(int from, int to, off_t size, bool *out_wrote);
/* Is it the same, in so many bytes? Failing to read is a no. */
bool tree_same(int one, int other, off_t size);
/* Remove whatever has that name, at any depth and with any modes. `work` is how many
 * entries may be met yet: a process that goes on making files must not keep us. */
int tree_remove(int dir, const char *name, uint32_t *work);

/* A name that we make: prefix and number. */
void tree_name(char out[TREE_NAME_ROOM], const char *prefix, uint64_t number);
/* The same, as no one before got it. */
void tree_new_name(char out[TREE_NAME_ROOM]);

/* Did it go, or become another kind of thing, while we looked? */
bool tree_vanished(int error);

#endif
