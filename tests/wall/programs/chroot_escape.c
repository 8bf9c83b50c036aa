/* row: 52
 * about: the classic way out of a changed root
 * control: unshared
 * boxes: every
 * status: ok */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    mkdir("jail", 0700);
    int made = chroot("jail");
    for (int i = 0; made == 0 && i < 64; i++)
        made = chdir("..");
    if (made == 0)
        made = chroot(".");
    printf("PROBE chroot: %s %s\n", made == 0 ? "reached" : "blocked", strerror(errno));
    return 0;
}
