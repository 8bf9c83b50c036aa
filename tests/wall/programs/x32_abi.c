/* row: 33
 * about: the x32 numbers of 64-bit calls
 * control: user
 * may-lack: x32
 * status: denied ok error */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    long pid = syscall(0x40000000 + SYS_getpid);
    printf("PROBE x32: %s %ld %d\n", pid > 0 ? "reached" : "blocked", pid, errno);
    return 0;
}
