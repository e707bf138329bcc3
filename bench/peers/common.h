/* What both programs need: a server process, a byte pipe to it, and a clock. */
#ifndef COMMON_H
#define COMMON_H

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_DEPTH 64
#define WARM_SECONDS 0.1
#define GIVE_UP_SECONDS 60 /* a peer that hangs must not hang the script */

struct options {
	int put;        /* else get */
	size_t size;    /* octets of one operation */
	double seconds; /* how long to measure */
	int depth;      /* operations under way */
};

static inline void die(const char *what, const char *why)
{
	fprintf(stderr, "%s: %s\n", what, why);
	_exit(1);
}

static inline double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static inline void send_all(int fd, const void *p, size_t n)
{
	for (ssize_t k; n; p = (const char *)p + k, n -= k)
		if ((k = write(fd, p, n)) <= 0)
			die("write", "the other process has ended");
}

static inline void recv_all(int fd, void *p, size_t n)
{
	for (ssize_t k; n; p = (char *)p + k, n -= k)
		if ((k = read(fd, p, n)) <= 0)
			die("read", "the other process has ended");
}

/* finished tells the server whether the client has closed its end of the pipe. It
 * looks only now and then, because to look is a system call. */
static inline int finished(int fd, unsigned turn)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return turn % 4096 == 0 && poll(&p, 1, 0) > 0;
}

static inline struct options parse(int argc, char **argv)
{
	struct options o = { 0 };

	if (argc == 5) {
		o.put = strcmp(argv[1], "put") == 0;
		o.size = strtoul(argv[2], NULL, 10);
		o.seconds = strtod(argv[3], NULL);
		o.depth = atoi(argv[4]);
	}
	if (!o.size || o.seconds <= 0 || o.depth < 1 || o.depth > MAX_DEPTH ||
	    (!o.put && strcmp(argv[1], "get"))) {
		fprintf(stderr, "usage: %s put|get OCTETS SECONDS DEPTH\n", argv[0]);
		_exit(2);
	}
	return o;
}

static inline void *buffer(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	if (!p)
		die("buffer", "out of memory");
	memset(p, 1, size);
	return p;
}

/* run forks a server and runs the client, which returns octets per second. */
static inline int run(const struct options *o, void (*server)(const struct options *, int),
		      double (*client)(const struct options *, int))
{
	int pipe[2], status;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pipe))
		die("socketpair", "failed");
	if ((pid = fork()) < 0)
		die("fork", "failed");
	alarm(GIVE_UP_SECONDS);
	if (!pid) {
		close(pipe[0]);
		server(o, pipe[1]);
		_exit(0);
	}
	close(pipe[1]);
	printf("%.3f\n", client(o, pipe[0]) / 1e9);
	fflush(stdout);
	close(pipe[0]);
	waitpid(pid, &status, 0);
	_exit(status != 0);
}

#endif
