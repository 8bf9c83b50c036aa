/* The porter's writing of files into /workspace. Runs with the occupant's uid. */
#ifndef BOX_FILES_PORTER_PUT_H
#define BOX_FILES_PORTER_PUT_H

#include <stdint.h>

#include "box/proto/proto.h"

/* Write the file of a PUT, or its next part, from the descriptor `from`. Cuts the call's path. Sets
 * the answer's error, size, and whether an entry was replaced. */
void porter_put(int root, struct box_porter_call *call, int from, struct box_porter_answer *out);
/* End the upload of that number; 0: all of them. */
void porter_abandon(uint32_t number);

#endif
