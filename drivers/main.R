# Runs one program of R for foreign.py, which reads what this leaves in the folder that CUPEL_R names: value (the
# text of the last value), error (class, line, column, message and calls, one in each line) and plot-*.png. Visible
# values before the last are printed, as Rscript prints them.
local({
    folder <- Sys.getenv("CUPEL_R")
    seed <- Sys.getenv("CUPEL_R_SEED")
    Sys.unsetenv(c("CUPEL_R", "CUPEL_R_SEED"))
    if (nzchar(seed)) set.seed(as.integer(seed))
    program <- file.path(folder, "main.R")
    devices <- 0
    options(keep.source = TRUE, warn = 1, bitmapType = "cairo", device = function(...) {
        devices <<- devices + 1
        grDevices::png(file.path(folder, sprintf("plot-%03d-%%03d.png", devices)), width = 800, height = 600, res = 100)
    })

    one_line <- function(text) gsub("\n", "\\n", gsub("\\", "\\\\", paste(text, collapse = "\n"), fixed = TRUE), fixed = TRUE)
    # The innermost call that stands in the program.
    place <- function(calls, at) {
        for (call in rev(calls)) {
            source <- attr(call, "srcref")
            if (!is.null(source) && identical(attr(source, "srcfile")$filename, program))
                return(c(source[1], source[5]))
        }
        at
    }
    report <- function(name, message, spot, calls) {
        texts <- vapply(calls, function(call) one_line(deparse(call, nlines = 1)[1]), "")
        writeLines(enc2utf8(c(name, spot, one_line(message), texts)), file.path(folder, "error"), useBytes = TRUE)
    }
    fail <- function(problem) {
        calls <- sys.calls()
        inner <- which(vapply(calls, function(call) identical(call[[1]], quote(.cupel_eval)), TRUE))
        own <- if (length(inner)) calls[-seq_len(inner[1] + 2)] else list()
        own <- Filter(function(call) !is.null(attr(call, "srcref")), own)
        report(class(problem)[1], conditionMessage(problem), place(calls, at), own)
        quit("no", 1, FALSE)
    }
    bad_syntax <- function(problem) {
        # "<path>:3:5: unexpected symbol", then the lines around it.
        parts <- regmatches(conditionMessage(problem), regexec(":([0-9]+):([0-9]+): ([^\n]*)", conditionMessage(problem)))[[1]]
        if (length(parts) < 4) parts <- c("", "1", "0", conditionMessage(problem))
        report("SyntaxError", parts[4], c(parts[2], as.integer(parts[3])), list())
        quit("no", 1, FALSE)
    }

    at <- c(0, 0)
    code <- tryCatch(parse(program, keep.source = TRUE, encoding = "UTF-8"), error = bad_syntax)
    sources <- attr(code, "srcref")
    .cupel_eval <- function(step) withVisible(eval(step, globalenv()))
    for (i in seq_along(code)) {
        at <- sources[[i]][c(1, 5)]
        got <- withCallingHandlers(.cupel_eval(code[[i]]), error = fail)
        if (got$visible && i < length(code))
            withCallingHandlers(print(got$value), error = fail)
        else if (got$visible && !is.null(got$value))
            writeLines(enc2utf8(utils::capture.output(withCallingHandlers(print(got$value), error = fail))),
                file.path(folder, "value"), useBytes = TRUE)
    }
    grDevices::graphics.off()
})
