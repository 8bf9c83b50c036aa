/* row: 33
 * about: the 32-bit door of the kernel, which a 64-bit filter does not guard
 * control: user
 * may-lack: int80
 * status: denied */
#include <stdio.h>

int main(void)
{
    long pid;
    __asm__ volatile("int $0x80" : "=a"(pid) : "a"(20L) : "memory"); /* getpid */
    printf("PROBE int80: %s %ld\n", pid > 0 ? "reached" : "blocked", pid);
    return 0;
}
