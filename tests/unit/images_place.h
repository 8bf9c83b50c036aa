/* A store of images in a folder of its own, and small builds in it. */
#ifndef TESTS_UNIT_IMAGES_PLACE_H
#define TESTS_UNIT_IMAGES_PLACE_H

#include "image/store/store_int.h"

struct images_place {
    char path[64];
    int state;
    struct image_store store;
};
#define IMAGES_PLACE_INIT ((struct images_place){ .state = -1, .store = IMAGE_STORE_INIT })

void images_place_open(struct images_place *place); /* removed at the end of the process */

struct image_build *images_start(struct images_place *place, const struct image_entry *from);
void images_file(struct image_build *build, const char *path, const char *text, unsigned mode);
/* The refusal of an entry, as its text. */
void images_refused(int rc, const struct err *err, const char *words);
/* Finish and close. */
void images_finish(struct image_build *build, const char *name, struct image_entry *out);
/* A build of one file. */
void images_make(struct images_place *place, const char *name, const char *text,
                 struct image_entry *out);
/* Names below a folder of the store, at any depth; folders themselves do not count. */
int images_count(const struct images_place *place, const char *folder);
/* A file below the store. */
void images_read(const struct images_place *place, const char *path, char out[256]);
bool images_stat(const struct images_place *place, const char *path, struct stat *out);

#endif
