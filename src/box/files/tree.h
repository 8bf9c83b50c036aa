/* Working in a tree that other processes change at the same time. Every open is beneath a directory
 * that is held open, without links, magic links and mounts. Changes by name take one component; all
 * other changes hold the entry open first. No heap, no recursion. */
#ifndef BOX_FILES_TREE_H
#define BOX_FILES_TREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define TREE_NAME_ROOM 32 /* of a generated name */

/* Set the descriptor of /proc/self/fd: through it an O_PATH descriptor can be opened or get another
 * mode. */
void tree_set_self(int fds);

/* A path beneath a directory; the descriptor, or -1 with errno. */
int tree_open(int dir, const char *path, int flags, mode_t mode);
/* Hold an entry of any type so that it cannot be swapped: O_PATH. */
int tree_pin(int dir, const char *name, struct stat *out);
int tree_chmod(int pin, mode_t mode);
/* Give an unnamed file, open for writing, a new name. */
int tree_link(int file, int dir, const char *name);
/* Open a regular file (else EINVAL) even if its owner removed the permission: the mode is changed
 * for a moment; out->st_mode has the original. */
int tree_open_file(int dir, const char *name, int flags, struct stat *out);
/* The same for a directory, to read and change it; tree_leave restores its mode. */
int tree_enter(int dir, const char *name, struct stat *out);
void tree_leave(int fd, const struct stat *was);

/* Reads a directory from its descriptor's position. */
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
/* The next name but "." and ".."; NULL after the last. Valid until the next call. */
const char *tree_next(struct tree_reader *reader);

/* From then on copying ends with ETIMEDOUT and comparing with false; 0: no deadline. */
void tree_set_deadline(int64_t ns);
bool tree_is_late(void);

/* Each returns 0 or an errno. Copy the first `size` bytes of `from` to `to`, which is empty; holes
 * stay holes. */
int tree_copy(int from, int to, off_t size);
/* The same for a `to` with content: writes only what differs, in place. */
int tree_mend(int from, int to, off_t size, bool *out_wrote);
/* Are the first `size` bytes equal? False if a read fails. */
bool tree_same(int one, int other, off_t size);
/* Remove the entry of that name, at any depth and with any modes. `work` limits the entries
 * visited: a process that keeps making files must not keep the porter. */
int tree_remove(int dir, const char *name, uint32_t *work);

/* Remove a file, a link or an empty directory. Cuts the path. */
int tree_unlink(int dir, char *path);

/* A generated name: prefix and number. */
void tree_name(char out[TREE_NAME_ROOM], const char *prefix, uint64_t number);
/* A name that was never generated before. */
void tree_new_name(char out[TREE_NAME_ROOM]);

/* Does this errno mean that the entry vanished or changed its type? */
bool tree_vanished(int error);

#endif
