/* Ranks that compute and then read or write, step by step. Options are key=value:
 *
 *   dir      where the files are
 *   reads    0: the ranks write; N: each reads its file in.RANK in the first N steps
 *   steps, compute   number of steps; seconds of computation (sleep) in each
 *   bytes, request   bytes per rank and step; bytes per request
 *   files    files per rank and step that the bytes are divided over
 *   writers  how many ranks write, each its share of everybody's bytes
 *   sync     fsync after every sync-th request of a file; 0: once at its end; -1: never
 *   direct   1: O_DIRECT, past the page cache
 *   stdio    1: fwrite without a buffer instead of write
 *
 * Rank 0 prints the seconds from the first barrier to the last.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int argument_count;
static char **arguments;
static int rank, ranks;

static const char *text(const char *key, const char *otherwise)
{
    size_t length = strlen(key);
    for (int i = 1; i < argument_count; i++)
        if (!strncmp(arguments[i], key, length) && arguments[i][length] == '=')
            return arguments[i] + length + 1;
    return otherwise;
}

static double number(const char *key, double otherwise)
{
    const char *value = text(key, NULL);
    return value ? atof(value) : otherwise;
}

static void check(int fine, const char *what)
{
    if (!fine) {
        perror(what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void pause_for(double seconds)
{
    struct timespec time = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

/* MPI_Barrier polls, which slows the others where ranks outnumber cores. */
static void barrier(void)
{
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE))
        pause_for(1e-4);
}

static void write_unbuffered(const char *path, char *buffer, size_t bytes, size_t request)
{
    FILE *file = fopen(path, "w");
    check(file != NULL, path);
    setvbuf(file, NULL, _IONBF, 0);
    for (size_t done = 0; done < bytes; done += request)
        check(fwrite(buffer, 1, request, file) == request, path);
    check(fclose(file) == 0, path);
}

static void transfer(const char *path, char *buffer, size_t bytes, size_t request, int reads,
                     int direct, int sync)
{
    int file = open(path, (reads ? O_RDONLY : O_CREAT | O_WRONLY) | (direct ? O_DIRECT : 0), 0644);
    check(file >= 0, path);
    int requests = 0;
    for (size_t done = 0; done < bytes; done += request) {
        ssize_t moved = reads ? read(file, buffer, request) : write(file, buffer, request);
        check(moved == (ssize_t)request, path);
        if (sync > 0 && ++requests % sync == 0)
            check(fsync(file) == 0, path);
    }
    if (sync == 0 && !reads)
        check(fsync(file) == 0, path);
    close(file);
}

int main(int count, char **values)
{
    argument_count = count;
    arguments = values;
    MPI_Init(&count, &values);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *dir = text("dir", ".");
    int steps = number("steps", 4), files = number("files", 1), sync = number("sync", -1);
    int writers = number("writers", ranks), direct = number("direct", 0);
    int reads = number("reads", 0);
    size_t bytes = number("bytes", 1 << 20), request = number("request", 1 << 20);
    size_t share = bytes / files * ranks / writers;
    char *buffer = aligned_alloc(4096, request < 4096 ? 4096 : request), path[4096];
    check(buffer != NULL, "buffer");
    memset(buffer, rank + 1, request);

    barrier();
    double start = MPI_Wtime();
    for (int step = 0; step < steps; step++) {
        pause_for(number("compute", 0.15));
        barrier();
        for (int file = 0; file < files && rank < writers && (!reads || step < reads); file++) {
            if (reads)
                snprintf(path, sizeof path, "%s/in.%d", dir, rank);
            else
                snprintf(path, sizeof path, "%s/out.%d.%d.%d", dir, step, rank, file);
            if (number("stdio", 0))
                write_unbuffered(path, buffer, share, request);
            else
                transfer(path, buffer, share, request, reads, direct, sync);
        }
        barrier();
    }
    if (rank == 0)
        printf("seconds %.4f\n", MPI_Wtime() - start);
    MPI_Finalize();
    return 0;
}
