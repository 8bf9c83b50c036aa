/* Virtual environments of Python: a box shows one at its own path, and its `bin/python` leads to
 * the image's interpreter. Its own words are hostile. Pure. Runs in the engine. */
#include "engine/talk/plan.h"

#include <stdio.h>
#include <string.h>

/* The folder of a program, without the part of /usr that / links to. */
static struct str folder_of(const char *program)
{
    const char *slash = strrchr(program, '/');
    struct str folder = { program, slash ? (size_t)(slash - program) : 0 };
    const struct str usr = STR("/usr/bin"), bin = STR("/bin");
    return str_eq(folder, usr) ? bin : folder;
}

static bool is_same_folder(const char *home, const char *program)
{
    const char *plain = strcmp(home, "/usr/bin") == 0 ? "/bin" : home;
    return str_eq(str_of(plain), folder_of(program));
}

int plan_check_venv(const struct request *request, const struct image *image, struct err *err)
{
    const struct request_venv *venv = request->venv;
    const struct image_facts *facts = &image->facts;
    if (!venv)
        return 0;
    if (image->hex[0]) {
        err_input(err, "venv", venv->path, "image host",
                  "a virtual environment goes with image host alone, not with image '%.80s'",
                  image->name);
        err_hint(err, "leave --image out, or add its packages to the image: cupel images add");
        return -1;
    }
    if (facts->python[0] && is_same_folder(venv->home, facts->python) &&
        (venv->minor == 0 || venv->minor == facts->python_minor))
        return 0;
    char version[16] = "";
    if (venv->minor > 0)
        snprintf(version, sizeof version, " 3.%d", venv->minor);
    err_input(err, "venv", venv->home, facts->python,
              "the virtual environment '%.200s' was made with Python%s of '%.200s', and the "
              "image's is Python 3.%d, '%.100s'",
              venv->path, version, venv->home, facts->python_minor, facts->python);
    err_hint(err, "make one with that: %.100s -m venv DIR", facts->python);
    return -1;
}
