/* Guesses from the text of code whether it uses the large packages, which decides the zygote. Runs
 * in the engine; pure. */
#include <string.h>

#include "base/buf.h"
#include "engine/pool/pool.h"

static bool names_data_packages(struct str text)
{
    static const char *const words[] = { "pandas", "numpy",   "matplotlib", "sympy",
                                         "scipy",  "sklearn", "seaborn",    "statsmodels" };
    for (size_t i = 0; i < array_len(words); i++) {
        if (memmem(text.at, text.len, words[i], strlen(words[i])))
            return true;
    }
    return false;
}

bool pools_uses_data_packages(const struct request *request)
{
    bool found = names_data_packages(request->code);
    for (size_t i = 0; i < request->file_count && !found; i++) {
        struct str path = str_of(request->files[i].path);
        found = path.len > 3 && memcmp(path.at + path.len - 3, ".py", 3) == 0 &&
                names_data_packages(request->files[i].data);
    }
    return found;
}
