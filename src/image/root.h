/* Opening files below a root that may not be "/". */
#ifndef IMAGE_ROOT_H
#define IMAGE_ROOT_H

/* open(path) with `root_dirfd` as "/", also for absolute symbolic links in it (Debian's
 * alternatives). `path` is relative. The descriptor, or -1 with errno. */
int image_root_open(int root_dirfd, const char *path, int flags);

#endif
