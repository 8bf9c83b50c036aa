/* MIME types by file name ending, for artifacts. Runs in any process; pure. The name alone decides:
 * the code controls the content, and must not choose how a browser treats it. */
#include "base/attr.h"
#include "contract/result.h"

#define MIME_ENDING_MAX 8

static const struct {
    const char *ending; /* lower case */
    const char *mime;
} mimes[] = {
    { "txt", "text/plain" },
    { "log", "text/plain" },
    { "md", "text/markdown" },
    { "csv", "text/csv" },
    { "tsv", "text/tab-separated-values" },
    { "html", "text/html" },
    { "htm", "text/html" },
    { "css", "text/css" },
    { "js", "text/javascript" },
    { "mjs", "text/javascript" },
    { "cjs", "text/javascript" },
    { "py", "text/x-python" },
    { "sh", "application/x-sh" },
    { "json", "application/json" },
    { "jsonl", "application/jsonl" },
    { "ipynb", "application/x-ipynb+json" },
    { "xml", "application/xml" },
    { "yaml", "application/yaml" },
    { "yml", "application/yaml" },
    { "toml", "application/toml" },
    { "png", "image/png" },
    { "jpg", "image/jpeg" },
    { "jpeg", "image/jpeg" },
    { "gif", "image/gif" },
    { "webp", "image/webp" },
    { "bmp", "image/bmp" },
    { "tif", "image/tiff" },
    { "tiff", "image/tiff" },
    { "ico", "image/vnd.microsoft.icon" },
    { "svg", "image/svg+xml" },
    { "pdf", "application/pdf" },
    { "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" },
    { "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document" },
    { "pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation" },
    { "xls", "application/vnd.ms-excel" },
    { "parquet", "application/vnd.apache.parquet" },
    { "sqlite", "application/vnd.sqlite3" },
    { "db", "application/vnd.sqlite3" },
    { "npy", "application/octet-stream" },
    { "zip", "application/zip" },
    { "gz", "application/gzip" },
    { "tar", "application/x-tar" },
    { "mp3", "audio/mpeg" },
    { "wav", "audio/wav" },
    { "mp4", "video/mp4" },
    { "webm", "video/webm" },
};

const char *result_mime(struct str path)
{
    static const char unknown[] = "application/octet-stream";
    size_t len = 0;
    char ending[MIME_ENDING_MAX];
    while (len < path.len && path.at[path.len - 1 - len] != '.') {
        if (path.at[path.len - 1 - len] == '/' || ++len > sizeof ending)
            return unknown;
    }
    /* ".png" alone is a hidden file without an ending. */
    if (len + 1 >= path.len || path.at[path.len - len - 2] == '/')
        return unknown;
    for (size_t i = 0; i < len; i++) {
        char c = path.at[path.len - len + i];
        ending[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    for (size_t i = 0; i < array_len(mimes); i++) {
        if (str_is((struct str){ ending, len }, mimes[i].ending))
            return mimes[i].mime;
    }
    return unknown;
}
