/* Program headers of hostile files: image_elf_loader reads only what is there. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "image/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char loader[64];
    own_fd fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || io_write_all(fd, data, size) < 0)
        return 0;
    bool is_elf = image_elf_loader(fd, loader, sizeof loader);
    if (strlen(loader) >= sizeof loader || (loader[0] && (!is_elf || loader[0] != '/')))
        abort();
    return 0;
}
