/* A run on a folder, or on files, of the caller. Runs in the engine. Its box is the one that may
 * show them, and its results are in the layer of changes alone. */
#include <unistd.h>

#include "base/io.h"
#include "base/own.h"
#include "engine/run/run.h"

const struct engine_attached *run_attached(const struct engine_run *run)
{
    /* A warm engine has it for its session. */
    const struct engine *engine = run->engine;
    return engine->preparing || engine->options.warm ? NULL : engine->options.attached;
}

enum engine_folder_mode run_folder(const struct engine_run *run)
{
    const struct engine_attached *attached = run_attached(run);
    return attached ? attached->mode : ENGINE_FOLDER_NONE;
}

int engine_attach(struct engine *engine, struct plan *plan)
{
    static const uint32_t modes[] = { [ENGINE_FOLDER_NONE] = BOX_FOLDER_NONE,
                                      [ENGINE_FOLDER_LAYER] = BOX_FOLDER_OVERLAY,
                                      [ENGINE_FOLDER_WRITE] = BOX_FOLDER_WRITE };
    const struct engine_attached *attached = engine->options.attached;
    struct box_call *call = &plan->create;
    int fds[BOX_PLANTS_MAX + 1];
    size_t count = call->create.plants.count;
    memcpy(fds, plan->plant_fds, count * sizeof *fds);
    call->create.folder.mode = modes[attached->mode];
    call->create.folder.places = attached->places.len > 0;
    own_fd places = -1;
    if (attached->places.len > 0) {
        places = io_sealed_memfd("places", attached->places.at, attached->places.len, 0);
        if (places < 0)
            return -1;
        fds[count++] = places;
    }
    house_call(&engine->house, call, fds, count);
    return 0;
}

int run_create_attached(struct engine_run *run)
{
    return engine_attach(run->engine, &run->plan);
}

void run_collect(struct engine_run *run, int porter, void (*done)(struct files_job *job))
{
    const struct engine_attached *attached = run_attached(run);
    struct loop *loop = &run->engine->loop;
    if (run_folder(run) == ENGINE_FOLDER_LAYER) {
        files_collect_layer(&run->files, loop, porter, run->request, &run->result, done);
        return;
    }
    files_collect(&run->files, loop, porter, run->request, &run->result, done);
    if (attached)
        run->files.places = attached->places;
}
