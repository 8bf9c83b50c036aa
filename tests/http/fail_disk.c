/* tests/records/test_records_disk.py preloads this into a service: what it writes to regular files
 * of the file system that has the file $FAIL_DISK fails, as the four numbers in that file say:
 * the errno of writes, the errno of syncs, "each of so many", and how often something failed. The
 * test changes them while the service runs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

struct orders {
    volatile int32_t writes, syncs, each, failed;
};
static struct orders *orders;
static dev_t disk;
static int32_t seen;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAIL_DISK");
    struct stat about;
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &about) < 0)
        return;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    disk = about.st_dev;
    orders = page != MAP_FAILED ? page : NULL;
}

static int fails(int fd, int32_t error)
{
    struct stat about;
    if (!orders || !error || fstat(fd, &about) < 0 || !S_ISREG(about.st_mode) ||
        about.st_dev != disk)
        return 0;
    if (orders->each > 1 && __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED) % orders->each)
        return 0;
    __atomic_add_fetch(&orders->failed, 1, __ATOMIC_RELAXED);
    errno = error;
    return 1;
}

#define ORDERED(what) (orders ? orders->what : 0)

ssize_t write(int fd, const void *bytes, size_t len)
{
    return fails(fd, ORDERED(writes)) ? -1 : syscall(SYS_write, fd, bytes, len);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off64_t at)
{
    return fails(fd, ORDERED(writes)) ? -1 : syscall(SYS_pwrite64, fd, bytes, len, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
    return pwrite64(fd, bytes, len, at);
}

int fsync(int fd)
{
    return fails(fd, ORDERED(syncs)) ? -1 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    return fails(fd, ORDERED(syncs)) ? -1 : (int)syscall(SYS_fdatasync, fd);
}
