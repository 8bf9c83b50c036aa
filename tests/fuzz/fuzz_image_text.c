/* Texts of images: os-release, and lines of a list. A line that is read is written as it was. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "image/os_release.h"
#include "image/store/store_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_line(struct str line)
{
    own_buf room = BUF_INIT(4 * PATH_MAX), again = BUF_INIT(8 * PATH_MAX);
    own_buf second = BUF_INIT(4 * PATH_MAX), text = BUF_INIT(8 * PATH_MAX);
    struct image_item item, back;
    struct err err = ERR_INIT;
    if (image_item_read(line, &room, &item) < 0)
        return;
    if (image_path_check(item.path, &err) < 0)
        abort();
    image_item_write(&item, &again);
    struct str written = { again.at, again.len - 1 };
    if (image_item_read(written, &second, &back) < 0 || !str_eq(item.path, back.path) ||
        image_item_order(item.path, back.path) != 0)
        abort();
    image_item_write(&back, &text);
    if (!str_eq(buf_str(&text), buf_str(&again)))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char os[64];
    struct str text = { (const char *)data, size };
    image_os_release(text, os, sizeof os);
    for (size_t i = 0; os[i]; i++)
        if (os[i] < ' ' || os[i] > 126)
            abort();
    for (size_t at = 0; at < size;) {
        const char *end = memchr(text.at + at, '\n', size - at);
        size_t len = end ? (size_t)(end - text.at) - at : size - at;
        check_line((struct str){ text.at + at, len });
        at += len + 1;
    }
    return 0;
}
