/* Opening below a root that is not necessarily ours. */
#ifndef IMAGE_ROOT_H
#define IMAGE_ROOT_H

/* open(path) with `root_dirfd` as "/", also for absolute symbolic links in it
 * (alternatives are such). `path` is relative. The fd, or -1 with errno. */
int image_root_open(int root_dirfd, const char *path, int flags);

#endif
