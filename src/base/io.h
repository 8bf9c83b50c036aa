/* Whole reads and writes, and datagrams that carry descriptors. No heap, no
 * stdio: the broker and the processes inside boxes use these too. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <sys/types.h>

#include "base/attr.h"

#define IO_FDS_MAX 48

/* Write everything; 0, or -1 with errno. */
int io_write_all(int fd, const void *bytes, size_t len) attr_must_use;
/* Read exactly len bytes; 0, or -1 with errno (ENODATA at a premature end). */
int io_read_all(int fd, void *bytes, size_t len) attr_must_use;
/* A small file below `dir`, or AT_FDCWD: its first bytes into `text`, with a NUL at the end, or a
 * text into it. The length or 0, or -1 with errno. */
ssize_t io_read_text(int dir, const char *path, char *text, size_t room);
int io_write_text(int dir, const char *path, const char *text);
/* Write everything at offset 0 of a new sealed memfd; the fd, or -1. */
int io_sealed_memfd(const char *name, const void *bytes, size_t len, int executable);

/* Give `count` descriptors the numbers `first`, `first` + 1, ...; -1 closes its number. The first
 * `inherited` of them stay open across exec. The old numbers stay open too. fds is overwritten.
 * 0, or -1 with errno. */
int io_place(int *fds, int count, int first, int inherited) attr_must_use;
/* Close every descriptor from `first` on, also where the kernel refuses
 * close_range. 0, or -1 with errno. */
int io_close_from(int first) attr_must_use;
/* Close every descriptor from `first` to `last`. */
void io_close_between(int first, int last);
void io_close_all(const int *fds, size_t count);
/* In a fork: this descriptor alone stays, with a number that is none of the standard streams',
 * which lead to /dev/null. The number, or -1. */
int io_keep_alone(int fd) attr_must_use;

/* Send one datagram with `count` descriptors (0 to IO_FDS_MAX). 0, or -1. */
int io_send(int sock, const void *bytes, size_t len, const int *fds, size_t count) attr_must_use;
/* The same without waiting: -1 with EAGAIN if there is no room. */
int io_send_now(int sock, const void *bytes, size_t len, const int *fds,
                size_t count) attr_must_use;
/* Receive one datagram of exactly `len` bytes and up to `max` descriptors (all O_CLOEXEC). Returns
 * 1, 0 at the end of the stream, or -1 with errno. EBADMSG: another size, truncated data or too
 * many descriptors; all that arrived are closed. Unused entries of fds are set to -1. */
int io_recv(int sock, void *bytes, size_t len, int *fds, size_t max,
            size_t *out_count) attr_must_use;

/* Refuse descriptors sent to this unix socket (Linux 6.16; no effect before): closing a received
 * descriptor can block for as long as its sender wants. */
void io_refuse_fds(int sock);

#endif
