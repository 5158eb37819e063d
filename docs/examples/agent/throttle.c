/* Lets a program write to regular files only when, and as fast as, an agent allows.
 *
 * Build:  cc -O2 -shared -fPIC -o throttle.so throttle.c -ldl
 * Use:    IOPRISM_THROTTLE=control IOPRISM_REPORT=job.jsonl LD_PRELOAD=./throttle.so program
 *
 * The control file holds three doubles: the rate in bytes per second, which the agent writes; the
 * time (CLOCK_MONOTONIC, seconds) until which the program wants to write, which this library
 * writes; and the time at which the agent last looked. A rate of 0 means to wait, a negative one
 * not to throttle at all; without an agent for a few seconds the program writes as it likes. A
 * token bucket of a tenth of a second smooths the rate. Every write is added to the report, one
 * JSON line each, which `ioprism watch --follow` reads.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 65536 }; /* bytes; smaller writes pass: logs, not data */
static const double ALONE = 3.0; /* seconds without a sign of the agent, after which it is gone */
static const double BUCKET = 0.1; /* seconds of the rate that may be saved up */
static const double LONGEST = 10.0; /* seconds a write may take and still count as one */

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static volatile double *control; /* rate, last want, last look of the agent */
static int report = -1;
static double began, tokens, filled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void pause_for(double seconds) {
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))};
    nanosleep(&t, NULL);
}

__attribute__((constructor)) static void begin(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    began = filled = now();
    const char *path = getenv("IOPRISM_THROTTLE");
    if (path) {
        int file = open(path, O_RDWR);
        if (file >= 0) {
            void *page = mmap(NULL, 24, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            if (page != MAP_FAILED) control = page;
            close(file);
        }
    }
    path = getenv("IOPRISM_REPORT");
    if (path) report = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int is_data(int file, size_t size) {
    struct stat about;
    return size >= SMALL && file != report && fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

/* Wait until the bucket holds as many bytes; what is larger than a bucket leaves a debt. */
static void wait_for(size_t size) {
    if (!control) return;
    pthread_mutex_lock(&lock);
    for (;;) {
        double rate = control[0], moment = now();
        control[1] = moment;
        if (rate < 0 || moment - control[2] > ALONE) break;
        tokens += rate * (moment - filled);
        filled = moment;
        if (tokens > rate * BUCKET) tokens = rate * BUCKET;
        if (rate > 0 && tokens >= 0) {
            tokens -= size;
            break;
        }
        double left = rate > 0 ? -tokens / rate : 0.01;
        pause_for(left < 0.01 ? (left > 0.0005 ? left : 0.0005) : 0.01);
    }
    pthread_mutex_unlock(&lock);
}

static void tell(double start, double end, double size) {
    char line[256];
    if (report < 0 || end <= start) return;
    int length = snprintf(line, sizeof line,
                          "{\"write_sync\":{\"number_of_ranks\":1,\"bandwidth\":{\"b_rank_avr\":[%.6g],"
                          "\"t_rank_s\":[%.6f],\"t_rank_e\":[%.6f]}}}\n",
                          size / (end - start), start - began, end - began);
    if (real_write(report, line, length) < 0) report = -1;
}

/* Say that this program still wants to write, until as many seconds from now; return the time. */
static double want(double seconds) {
    double moment = now();
    if (control) control[1] = moment + seconds;
    return moment;
}

ssize_t write(int file, const void *data, size_t size) {
    if (!is_data(file, size)) return real_write(file, data, size);
    wait_for(size);
    double start = want(LONGEST);
    ssize_t done = real_write(file, data, size);
    double end = want(0.0);
    if (done > 0) tell(start, end, done);
    return done;
}

ssize_t pwrite(int file, const void *data, size_t size, off_t place) {
    if (!is_data(file, size)) return real_pwrite(file, data, size, place);
    wait_for(size);
    double start = want(LONGEST);
    ssize_t done = real_pwrite(file, data, size, place);
    double end = want(0.0);
    if (done > 0) tell(start, end, done);
    return done;
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t place) {
    return pwrite(file, data, size, place);
}
