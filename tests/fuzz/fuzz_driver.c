/* Fuzz the parser of driver frames: bytes from the box, in pieces of varying size. */
#include <stddef.h>
#include <stdint.h>

#include "engine/driver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct driver driver = DRIVER_INIT;
    size_t piece = size > 0 ? data[0] % 61 + 1 : 1;
    for (size_t at = 0; at < size; at += piece)
        driver_feed(&driver, data + at, size - at < piece ? size - at : piece);
    driver_done(&driver);
    return 0;
}
