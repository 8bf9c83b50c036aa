/* The shared memory with the deadline of each box. Engine and broker. */
#include "box/proto/due.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int due_make(struct due_page **out)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create("cupel-due", flags | MFD_NOEXEC_SEAL);
    if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
        fd = memfd_create("cupel-due", flags);
    if (fd < 0)
        return -1;
    void *page = MAP_FAILED;
    if (ftruncate(fd, sizeof **out) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        page = mmap(NULL, sizeof **out, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    *out = page;
    return fd;
}

const struct due_page *due_open(int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 ||
        st.st_size != sizeof(struct due_page))
        return NULL;
    void *page = mmap(NULL, sizeof(struct due_page), PROT_READ, MAP_SHARED, fd, 0);
    return page == MAP_FAILED ? NULL : page;
}

void due_close(struct due_page *page)
{
    if (page)
        munmap(page, sizeof *page);
}

/* wall_ns is cleared first and set last: the broker never reads an old deadline with new values. */
void due_set(struct due_page *page, uint32_t box, int64_t wall_ns, int64_t cpu_us)
{
    if (!page || box >= BOX_MAX)
        return;
    struct due_box *due = &page->box[box];
    atomic_store(&due->wall_ns, 0);
    atomic_store(&due->cpu_us, cpu_us);
    atomic_fetch_add(&due->serial, 1);
    atomic_store(&due->wall_ns, wall_ns);
}
