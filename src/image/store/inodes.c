/* A table from inode numbers to what a build knows: the hash of a file that it wrote or linked, and
 * the time that a folder shall have. Open addressing; a build removes none. */
#include "image/store/store_int.h"

#include <stdlib.h>
#include <string.h>

void image_inodes_done(struct image_inodes *inodes)
{
    free(inodes->at);
    *inodes = (struct image_inodes){ 0 };
}

static struct image_inode *slot_of(struct image_inode *at, size_t room, uint64_t number)
{
    size_t i = (size_t)(number * 0x9e3779b97f4a7c15u >> 20) & (room - 1);
    while (at[i].number != 0 && at[i].number != number)
        i = (i + 1) & (room - 1);
    return &at[i];
}

static void grow(struct image_inodes *inodes)
{
    size_t room = inodes->room > 0 ? 2 * inodes->room : 1024;
    struct image_inode *at = buf_alloc_zero(room, sizeof *at);
    for (size_t i = 0; i < inodes->room; i++)
        if (inodes->at[i].number != 0)
            *slot_of(at, room, inodes->at[i].number) = inodes->at[i];
    free(inodes->at);
    inodes->at = at;
    inodes->room = room;
}

static unsigned char digit_of(char c)
{
    return (unsigned char)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void image_inodes_set(struct image_inodes *inodes, uint64_t number, const char *hex,
                      int64_t mtime_s)
{
    if (number == 0)
        return;
    if (3 * inodes->room <= 4 * inodes->count)
        grow(inodes);
    struct image_inode *slot = slot_of(inodes->at, inodes->room, number);
    inodes->count += slot->number == 0;
    slot->number = number;
    slot->mtime_s = mtime_s;
    memset(slot->hash, 0, sizeof slot->hash);
    for (size_t i = 0; hex && i < HASH_BYTES; i++)
        slot->hash[i] = (unsigned char)(digit_of(hex[2 * i]) << 4 | digit_of(hex[2 * i + 1]));
}

const struct image_inode *image_inodes_find(const struct image_inodes *inodes, uint64_t number)
{
    if (inodes->room == 0)
        return NULL;
    const struct image_inode *slot = slot_of(inodes->at, inodes->room, number);
    return slot->number == number ? slot : NULL;
}

void image_hex_write(const unsigned char bytes[HASH_BYTES], char out[HASH_HEX_ROOM])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < HASH_BYTES; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * HASH_BYTES] = 0;
}
