/* Tells a listener which calls of libc failed: loaded before libc, it calls on and looks at results.

   Built where a C compiler is, at the first use. A call that succeeds costs one comparison. It never
   fails a call, changes no result and leaves errno as it was. The Python line comes from faulthandler
   in the very thread: a signal to ourselves, whose handler writes to a file that only we know. */
#define _GNU_SOURCE
#undef _FORTIFY_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#undef fwrite_unlocked
#undef fputs_unlocked
#undef fflush_unlocked

#define STACK_FILE 1919249505 /* no process has such a file; see inside/blame.py */
#define STACK_TEXT 12288
#define ONE_STACK 59
#define ALL_STACKS 60
#define SLOTS 1024
#define OFTEN 50
#define MOST_ASKED 3
#define ANSWER_MS 2000

#define LOCAL static __thread __attribute__((tls_model("initial-exec")))

static int out = -1; /* the line to the listener */
static int nobody_listens;
static dev_t out_device;
static ino_t out_inode;
static int has_python;
static char command[256];
static unsigned char wanted[256];
static unsigned failed_names[SLOTS], seen[SLOTS], times[SLOTS];
static int any_failed;
static pid_t in_doubt; /* this process, once a call of its failed and no Python was seen behind it */

LOCAL int busy;
/* Where the handler's words go while a report is made. Volatile: libc declares that `syscall` never
   comes back to us, but the handler does. */
LOCAL char *volatile stack_text;
LOCAL volatile unsigned stack_size;
LOCAL char line[1024]; /* of a stack that somebody else asked for */
LOCAL size_t line_size;

/* --- the line to the listener ------------------------------------------------------------------ */

static void connect_out(void) {
  const char *name = getenv("RELAUNCH_BLAME");
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  struct rlimit most;
  struct stat info;
  size_t size = name ? strlen(name) : 0;
  int fd, high;
  if (size < 2 || name[0] != '@' || size >= sizeof to.sun_path) return;
  memcpy(to.sun_path + 1, name + 1, size - 1);
  fd = syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  if (syscall(SYS_connect, fd, &to, offsetof(struct sockaddr_un, sun_path) + size) < 0) {
    nobody_listens = 1;
    syscall(SYS_close, fd);
    return;
  }
  /* High, so that the files of the program have the numbers that they would have without us. */
  if (getrlimit(RLIMIT_NOFILE, &most) || most.rlim_cur > 1024) most.rlim_cur = 1024;
  high = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, most.rlim_cur > 16 ? (long)most.rlim_cur - 8 : 0L);
  if (high >= 0) {
    syscall(SYS_close, fd);
    fd = high;
  }
  if (fstat(fd, &info) == 0) {
    out_device = info.st_dev;
    out_inode = info.st_ino;
    out = fd;
  }
}

static int is_connected(void) { /* the program may have closed it, and opened something else */
  struct stat info;
  if (out >= 0 && fstat(out, &info) == 0 && info.st_dev == out_device &&
      info.st_ino == out_inode)
    return 1;
  out = -1;
  if (!nobody_listens) connect_out();
  return out >= 0;
}

/* `printed` is what snprintf said of a head that has room for `most`. */
static void send_record(const char *head, int printed, size_t most, const char *text,
                        size_t text_size) {
  struct iovec parts[2] = {{(void *)head, (size_t)printed < most ? (size_t)printed : most},
                           {(void *)text, text_size}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = text_size ? 2 : 1};
  while (syscall(SYS_sendmsg, out, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) {}
}

static unsigned hash_of(const char *text, unsigned seed) {
  unsigned value = 2166136261u ^ seed;
  for (; text && *text; text++) value = (value ^ (unsigned char)*text) * 16777619u;
  return value ? value : 1;
}

static const char *last_name(const char *path) {
  const char *slash = path ? strrchr(path, '/') : 0;
  return slash && slash[1] ? slash + 1 : path;
}

/* --- where Python is --------------------------------------------------------------------------- */

static void ask_stack(int number) {
  sigset_t one, before;
  sigemptyset(&one);
  sigaddset(&one, number);
  pthread_sigmask(SIG_UNBLOCK, &one, &before);
  syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), number);
  pthread_sigmask(SIG_SETMASK, &before, 0);
}

static unsigned take_stack(char *text, int number) {
  struct sigaction now;
  int tries;
  if (!has_python || sigaction(number, 0, &now) || now.sa_handler == SIG_DFL ||
      now.sa_handler == SIG_IGN)
    return 0;
  stack_text = text;
  stack_size = 0;
  for (tries = 0; tries < 3 && !stack_size; tries++) { /* faulthandler serves one thread at a time */
    if (tries) sched_yield();
    ask_stack(number);
  }
  stack_text = 0;
  return stack_size;
}

/* --- one report -------------------------------------------------------------------------------- */

static void name_of(char *to, size_t size, int fd) {
  char link[64];
  ssize_t count;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  count = syscall(SYS_readlinkat, AT_FDCWD, link, to, size - 1);
  to[count > 0 ? count : 0] = 0;
}

static void full_path(char *to, size_t size, int folder, const char *path) {
  size_t used;
  if (path && path[0] == '/') {
    snprintf(to, size, "%s", path);
    return;
  }
  if (folder == AT_FDCWD || folder < 0) {
    if (!getcwd(to, size)) to[0] = 0;
  } else
    name_of(to, size, folder);
  used = strlen(to);
  if (path && *path) snprintf(to + used, size - used, "/%s", path);
}

static void address_text(char *to, size_t size, const struct sockaddr *address, socklen_t length) {
  char host[INET6_ADDRSTRLEN] = "";
  to[0] = 0;
  if (!address || length < (socklen_t)sizeof address->sa_family) return;
  if (address->sa_family == AF_INET) {
    const struct sockaddr_in *in = (const void *)address;
    inet_ntop(AF_INET, &in->sin_addr, host, sizeof host);
    snprintf(to, size, "%s:%d", host, ntohs(in->sin_port));
  } else if (address->sa_family == AF_INET6) {
    const struct sockaddr_in6 *in = (const void *)address;
    inet_ntop(AF_INET6, &in->sin6_addr, host, sizeof host);
    snprintf(to, size, "[%s]:%d", host, ntohs(in->sin6_port));
  } else if (address->sa_family == AF_UNIX) {
    const struct sockaddr_un *un = (const void *)address;
    size_t most = length - offsetof(struct sockaddr_un, sun_path);
    int is_abstract = !un->sun_path[0];
    snprintf(to, size, "%s%.*s", is_abstract ? "@" : "", (int)(most - is_abstract),
             un->sun_path + is_abstract);
  }
}

/* The listener is to look before we go on, and perhaps end: at our open files, or, where there is no
   Python, at the one that started us. */
static int is_to_be_looked_at(int error, int has_stack) {
  static int asked;
  int is_out = error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE ||
               error == ENOMEM || error == EFBIG || error == EIO;
  int is_asked = error == EMFILE || (!has_python && !has_stack && is_out);
  return is_asked && __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED) <= MOST_ASKED;
}

static void await_answer(void) {
  struct pollfd answer = {out, POLLIN, 0};
  char word[8];
  if (poll(&answer, 1, ANSWER_MS) > 0) (void)!syscall(SYS_read, out, word, sizeof word);
}

struct room {
  long long bytes, total, inodes; /* -1: not known */
};

static struct room room_at(int fd, char *where, int may_be_missing) {
  struct room found = {-1, -1, -1};
  struct statvfs space;
  int failed = fd >= 0 ? fstatvfs(fd, &space) : statvfs(where, &space);
  char *slash = failed && may_be_missing ? strrchr(where, '/') : 0;
  if (slash && slash != where) { /* the folder is there */
    *slash = 0;
    failed = statvfs(where, &space);
    *slash = '/';
  }
  if (!failed) {
    found.bytes = (long long)space.f_bavail * space.f_frsize;
    found.total = (long long)space.f_blocks * space.f_frsize;
    found.inodes = space.f_files ? (long long)space.f_favail : -1;
  }
  return found;
}

static void send_hit(const char *kind, const char *call, int error, int fd, long long asked,
                     const char *where, struct room room, unsigned count, const char *text,
                     unsigned size) {
  char head[5120];
  struct timespec now;
  int used;
  clock_gettime(CLOCK_MONOTONIC, &now);
  used = snprintf(head, sizeof head,
                  "%s%c%d%c%d%c%ld%c%d%c%s%c%d%c%lld%c%s%c%lld%c%lld%c%lld%c%u%c%lld.%09ld%c%s%c",
                  kind, 0, getpid(), 0, getppid(), 0, syscall(SYS_gettid), 0, error, 0, call, 0, fd,
                  0, asked, 0, where, 0, room.bytes, 0, room.total, 0, room.inodes, 0, count, 0,
                  (long long)now.tv_sec, now.tv_nsec, 0, command, 0);
  send_record(head, used, sizeof head, text, size);
}

static void report(const char *call, int fd, int folder, const char *path, long long asked,
                   int error, const struct sockaddr *address, socklen_t length) {
  char where[4096], text[STACK_TEXT];
  struct room room = {-1, -1, -1};
  unsigned key, count, size = 0;
  int is_space, asks;
  if (busy || error <= 0 || error > 255 || !wanted[error]) return;
  busy = 1;
  if (!is_connected()) goto done;
  where[0] = 0;
  if (address)
    address_text(where, sizeof where, address, length);
  else if (path)
    full_path(where, sizeof where, folder, path);
  else if (fd >= 0)
    name_of(where, sizeof where, fd);
  key = hash_of(where, hash_of(call, error));
  if (__atomic_exchange_n(&seen[key % SLOTS], key, __ATOMIC_RELAXED) != key)
    __atomic_store_n(&times[key % SLOTS], 0, __ATOMIC_RELAXED);
  count = __atomic_add_fetch(&times[key % SLOTS], 1, __ATOMIC_RELAXED);
  if (count > OFTEN && (count & (count - 1))) goto done; /* a loop: now and then is enough */
  if (error == ENOENT && path) {
    unsigned name = hash_of(last_name(path), 0);
    __atomic_store_n(&failed_names[name % SLOTS], name, __ATOMIC_RELAXED);
    any_failed = 1;
  }
  is_space = error == ENOSPC || error == EDQUOT || error == EROFS;
  if (is_space) room = room_at(fd, where, path != 0);
  size = take_stack(text, ONE_STACK);
  if (!size && (is_space || !path)) size = take_stack(text, ALL_STACKS); /* no thread of Python's */
  asks = is_to_be_looked_at(error, size > 0);
  send_hit(asks ? "ask" : "hit", call, error, fd, asked, where, room, count, text, size);
  if (asks) await_answer();
  else if (!size && !has_python) in_doubt = getpid();
done:
  busy = 0;
}

/* Most that is not there was only looked for, so nobody is asked for it; but a program that ends badly
   may end for it, and whoever started it still waits where it did. */
static void ask_who(int status) {
  char head[64];
  if (busy || !status || has_python || in_doubt != getpid()) return;
  busy = 1;
  in_doubt = 0;
  if (is_connected()) {
    int used = snprintf(head, sizeof head, "who%c%d%c%d", 0, getpid(), 0, getppid());
    send_record(head, used, sizeof head, 0, 0);
    await_answer();
  }
  busy = 0;
}

#ifdef __GLIBC__
static void at_exit(int status, void *nothing) {
  (void)nothing;
  ask_who(status);
}
#endif

static void found_after_all(const char *path) {
  unsigned name = hash_of(last_name(path), 0);
  char head[5120], where[4096];
  int used;
  if (busy || __atomic_load_n(&failed_names[name % SLOTS], __ATOMIC_RELAXED) != name) return;
  busy = 1;
  __atomic_store_n(&failed_names[name % SLOTS], 0, __ATOMIC_RELAXED);
  if (is_connected()) {
    full_path(where, sizeof where, AT_FDCWD, path);
    used = snprintf(head, sizeof head, "found%c%d%c%s", 0, getpid(), 0, where);
    send_record(head, used, sizeof head, 0, 0);
  }
  busy = 0;
}

/* Words of the stack that the listener asked for with a signal, line by line. */
static void pass_on(const char *data, size_t size) {
  char head[1100];
  int before = errno;
  if (line_size + size >= sizeof line) line_size = 0;
  if (size < sizeof line) {
    memcpy(line + line_size, data, size);
    line_size += size;
  }
  if (line_size && line[line_size - 1] == '\n' && !busy) {
    busy = 1;
    if (is_connected()) {
      int count = snprintf(head, sizeof head, "line%c%d%c%.*s", 0, getpid(), 0, (int)line_size, line);
      send_record(head, count, sizeof head, 0, 0);
    }
    busy = 0;
    line_size = 0;
  }
  errno = before;
}

/* --- a bus error ------------------------------------------------------------------------------- */

static void mapped_file(char *to, size_t size, unsigned long address) {
  char block[8192], *row, *end;
  size_t kept = 0;
  ssize_t count;
  int fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
  to[0] = 0;
  if (fd < 0) return;
  while ((count = syscall(SYS_read, fd, block + kept, sizeof block - 1 - kept)) > 0) {
    kept += count;
    block[kept] = 0;
    for (row = block; (end = strchr(row, '\n')); row = end + 1) {
      unsigned long low, high;
      int at = 0;
      *end = 0;
      if (sscanf(row, "%lx-%lx %*s %*s %*s %*s %n", &low, &high, &at) == 2 && at &&
          low <= address && address < high) {
        snprintf(to, size, "%s", row + at);
        kept = 0;
        break;
      }
    }
    if (to[0]) break;
    kept = strlen(row);
    memmove(block, row, kept);
  }
  syscall(SYS_close, fd);
}

static void on_bus_error(int number, siginfo_t *info, void *context) {
  char where[4096], text[STACK_TEXT];
  unsigned size;
  (void)context;
  signal(number, SIG_DFL); /* the instruction is run again, and ends the process as ever */
  if (busy) return;
  busy = 1;
  if (is_connected()) {
    mapped_file(where, sizeof where, (unsigned long)info->si_addr);
    size = take_stack(text, ONE_STACK);
    if (!size) size = take_stack(text, ALL_STACKS);
    send_hit("hit", "SIGBUS", -7, -1, 0, where, room_at(-1, where, 1), 1, text, size);
  }
  busy = 0;
}

/* --- at the start ------------------------------------------------------------------------------ */

__attribute__((constructor)) static void begin(int argc, char **argv, char **envp) {
  static const int errors[] = {ENOSPC, EDQUOT, EMFILE, ENFILE, ENOMEM, EFBIG, EIO, ESTALE, ENOENT,
                               ENOTDIR, EACCES, EPERM, EROFS, ETXTBSY, ECONNREFUSED, EADDRINUSE,
                               EADDRNOTAVAIL, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT};
  struct sigaction now;
  char head[512];
  size_t at, used = 0;
  int word, before = errno;
  (void)envp;
  for (at = 0; at < sizeof errors / sizeof *errors; at++) wanted[errors[at]] = 1;
  for (word = 0; word < argc && argv && argv[word] && used < sizeof command - 1; word++)
    used += snprintf(command + used, sizeof command - used, "%s%s", word ? " " : "", argv[word]);
  connect_out();
#ifdef __GLIBC__
  on_exit(at_exit, 0);
#endif
  if (out >= 0) {
    int size = snprintf(head, sizeof head, "hello%c%d%c%s", 0, getpid(), 0, command);
    send_record(head, size, sizeof head, 0, 0);
    if (sigaction(SIGBUS, 0, &now) == 0 && now.sa_handler == SIG_DFL) {
      memset(&now, 0, sizeof now);
      now.sa_sigaction = on_bus_error;
      now.sa_flags = SA_SIGINFO;
      sigaction(SIGBUS, &now, 0);
    }
  }
  errno = before;
}

/* --- the calls --------------------------------------------------------------------------------- */

#define REAL(name)                                   \
  static __typeof__(&name) real;                     \
  if (__builtin_expect(!real, 0)) real = (__typeof__(real))dlsym(RTLD_NEXT, #name)
#define FAILED(fd, folder, path, asked, address, length)                     \
  do {                                                                       \
    int error_ = errno;                                                      \
    report(call_, fd, folder, path, asked, error_, address, length);         \
    errno = error_;                                                          \
  } while (0)

#define CALLS_ON(type, name, as, arguments, passed, has_failed, failed) \
  type name arguments {                                                 \
    static const char call_[] = as;                                     \
    REAL(name);                                                         \
    type found = real passed;                                           \
    if (__builtin_expect(has_failed, 0)) failed;                        \
    return found;                                                       \
  }

/* On an open file. */
#define ON_FILE(type, name, as, arguments, passed, fd, asked)           \
  CALLS_ON(type, name, as, arguments, passed, (long)found < 0, FAILED(fd, -1, 0, asked, 0, 0))
/* On a path: one that is found later was only looked for. */
#define ON_PATH(type, name, as, arguments, passed, folder, path, bad)   \
  type name arguments {                                                 \
    static const char call_[] = as;                                     \
    REAL(name);                                                         \
    type found = real passed;                                           \
    if (__builtin_expect(found == bad, 0)) FAILED(-1, folder, path, 0, 0, 0); \
    else if (__builtin_expect(any_failed, 0)) {                         \
      int error_ = errno;                                               \
      found_after_all(path);                                            \
      errno = error_;                                                   \
    }                                                                   \
    return found;                                                       \
  }

void _exit(int status) {
  REAL(_exit);
  ask_who(status);
  real(status);
  __builtin_unreachable();
}

ssize_t write(int fd, const void *data, size_t size) {
  static const char call_[] = "write";
  REAL(write);
  if (__builtin_expect(fd == STACK_FILE, 0)) {
    size_t room = STACK_TEXT - stack_size;
    if (!stack_text) {
      if (!has_python) /* Python says that it can tell where it is */
        has_python = 1;
      else /* somebody else asked, for a process that this one started */
        pass_on(data, size);
      return size;
    }
    if (size < room) room = size;
    memcpy(stack_text + stack_size, data, room);
    stack_size += room;
    return size;
  }
  ssize_t found = real(fd, data, size);
  if (__builtin_expect(found < 0, 0)) FAILED(fd, -1, 0, size, 0, 0);
  return found;
}

static long long bytes_of(const struct iovec *parts, int count) {
  long long sum = 0;
  for (int at = 0; at < count; at++) sum += parts[at].iov_len;
  return sum;
}

ON_FILE(ssize_t, pwrite, "pwrite", (int fd, const void *d, size_t n, off_t o), (fd, d, n, o), fd, n)
ON_FILE(ssize_t, writev, "writev", (int fd, const struct iovec *v, int n), (fd, v, n), fd,
        bytes_of(v, n))
ON_FILE(ssize_t, pwritev, "pwritev", (int fd, const struct iovec *v, int n, off_t o), (fd, v, n, o),
        fd, bytes_of(v, n))
ON_FILE(int, ftruncate, "ftruncate", (int fd, off_t n), (fd, n), fd, n)
ON_FILE(int, fallocate, "fallocate", (int fd, int m, off_t o, off_t n), (fd, m, o, n), fd, n)
ON_FILE(int, fsync, "fsync", (int fd), (fd), fd, 0)
ON_FILE(int, fdatasync, "fdatasync", (int fd), (fd), fd, 0)
ON_FILE(int, close, "close", (int fd), (fd), -1, 0)
ON_FILE(int, msync, "msync", (void *a, size_t n, int f), (a, n, f), -1, n)
ON_FILE(int, fchmod, "fchmod", (int fd, mode_t m), (fd, m), fd, 0)
ON_FILE(int, fchown, "fchown", (int fd, uid_t u, gid_t g), (fd, u, g), fd, 0)
ON_FILE(ssize_t, sendfile, "sendfile", (int to, int from, off_t *o, size_t n), (to, from, o, n), to, n)
ON_FILE(ssize_t, copy_file_range, "copy_file_range",
        (int from, off64_t *a, int to, off64_t *b, size_t n, unsigned f), (from, a, to, b, n, f), to, n)
ON_FILE(ssize_t, splice, "splice",
        (int from, off64_t *a, int to, off64_t *b, size_t n, unsigned f), (from, a, to, b, n, f), to, n)

/* What needs a new file. */
ON_FILE(int, socket, "socket", (int d, int t, int p), (d, t, p), -1, 0)
ON_FILE(int, socketpair, "socketpair", (int d, int t, int p, int v[2]), (d, t, p, v), -1, 0)
ON_FILE(int, pipe, "pipe", (int v[2]), (v), -1, 0)
ON_FILE(int, pipe2, "pipe2", (int v[2], int f), (v, f), -1, 0)
ON_FILE(int, dup, "dup", (int fd), (fd), fd, 0)
ON_FILE(int, dup2, "dup2", (int a, int b), (a, b), a, 0)
ON_FILE(int, dup3, "dup3", (int a, int b, int f), (a, b, f), a, 0)
ON_FILE(int, accept, "accept", (int fd, struct sockaddr *a, socklen_t *n), (fd, a, n), fd, 0)
ON_FILE(int, accept4, "accept4", (int fd, struct sockaddr *a, socklen_t *n, int f), (fd, a, n, f), fd, 0)
ON_FILE(int, epoll_create1, "epoll_create1", (int f), (f), -1, 0)
ON_FILE(int, eventfd, "eventfd", (unsigned n, int f), (n, f), -1, 0)
ON_FILE(int, timerfd_create, "timerfd_create", (int c, int f), (c, f), -1, 0)
ON_FILE(int, memfd_create, "memfd_create", (const char *n, unsigned f), (n, f), -1, 0)
ON_FILE(int, inotify_init1, "inotify_init1", (int f), (f), -1, 0)

/* To an address. */
#define ON_ADDRESS(name, as)                                                              \
  CALLS_ON(int, name, as, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), \
           found < 0, FAILED(fd, -1, 0, 0, to, n))
ON_ADDRESS(connect, "connect")
ON_ADDRESS(bind, "bind")

/* On a path. */
#define MODE                                                                  \
  mode_t mode = 0;                                                            \
  if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {                  \
    va_list more;                                                             \
    va_start(more, flags);                                                    \
    mode = va_arg(more, mode_t);                                              \
    va_end(more);                                                             \
  }
#define OPENS(name, as, arguments, passed, folder)                            \
  int name arguments {                                                        \
    static const char call_[] = as;                                           \
    REAL(name);                                                               \
    MODE int found = real passed;                                             \
    if (__builtin_expect(found < 0, 0)) FAILED(-1, folder, path, 0, 0, 0);    \
    else if (__builtin_expect(any_failed, 0)) {                               \
      int error_ = errno;                                                     \
      found_after_all(path);                                                  \
      errno = error_;                                                         \
    }                                                                         \
    return found;                                                             \
  }
OPENS(open, "open", (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(openat, "openat", (int folder, const char *path, int flags, ...), (folder, path, flags, mode),
      folder)
ON_PATH(int, creat, "creat", (const char *path, mode_t m), (path, m), AT_FDCWD, path, -1)
ON_PATH(FILE *, fopen, "fopen", (const char *path, const char *m), (path, m), AT_FDCWD, path, NULL)
ON_PATH(DIR *, opendir, "opendir", (const char *path), (path), AT_FDCWD, path, NULL)
ON_PATH(int, mkdir, "mkdir", (const char *path, mode_t m), (path, m), AT_FDCWD, path, -1)
ON_PATH(int, mkdirat, "mkdirat", (int d, const char *path, mode_t m), (d, path, m), d, path, -1)
ON_PATH(int, rmdir, "rmdir", (const char *path), (path), AT_FDCWD, path, -1)
ON_PATH(int, unlink, "unlink", (const char *path), (path), AT_FDCWD, path, -1)
ON_PATH(int, unlinkat, "unlinkat", (int d, const char *path, int f), (d, path, f), d, path, -1)
ON_PATH(int, truncate, "truncate", (const char *path, off_t n), (path, n), AT_FDCWD, path, -1)
ON_PATH(int, chmod, "chmod", (const char *path, mode_t m), (path, m), AT_FDCWD, path, -1)
ON_PATH(int, chown, "chown", (const char *path, uid_t u, gid_t g), (path, u, g), AT_FDCWD, path, -1)
ON_PATH(int, chdir, "chdir", (const char *path), (path), AT_FDCWD, path, -1)
ON_PATH(int, access, "access", (const char *path, int m), (path, m), AT_FDCWD, path, -1)
ON_PATH(int, faccessat, "faccessat", (int d, const char *path, int m, int f), (d, path, m, f), d,
        path, -1)
ON_PATH(ssize_t, readlink, "readlink", (const char *path, char *b, size_t n), (path, b, n), AT_FDCWD,
        path, -1)
ON_PATH(int, mkstemp, "mkstemp", (char *path), (path), AT_FDCWD, path, -1)
ON_PATH(char *, mkdtemp, "mkdtemp", (char *path), (path), AT_FDCWD, path, NULL)
ON_PATH(int, execve, "execve", (const char *path, char *const a[], char *const e[]), (path, a, e),
        AT_FDCWD, path, -1)
ON_PATH(int, execv, "execv", (const char *path, char *const a[]), (path, a), AT_FDCWD, path, -1)
ON_PATH(int, execvp, "execvp", (const char *path, char *const a[]), (path, a), AT_FDCWD, path, -1)

/* The file that did not come to be, or whose end did not: the other path is rarely the reason. */
static const char *culprit(const char *from, const char *to) {
  return errno == ENOENT && access(from, F_OK) ? from : to;
}

#define TWO_PATHS(name, as, arguments, passed, from, to)                      \
  int name arguments {                                                        \
    static const char call_[] = as;                                           \
    REAL(name);                                                               \
    int found = real passed;                                                  \
    if (__builtin_expect(found < 0, 0)) {                                     \
      int was = errno, before = busy;                                         \
      busy = 1;                                                               \
      const char *path = culprit(from, to);                                   \
      busy = before;                                                          \
      errno = was;                                                            \
      FAILED(-1, AT_FDCWD, path, 0, 0, 0);                                    \
    }                                                                         \
    return found;                                                             \
  }
TWO_PATHS(rename, "rename", (const char *a, const char *b), (a, b), a, b)
TWO_PATHS(link, "link", (const char *a, const char *b), (a, b), a, b)
TWO_PATHS(symlink, "symlink", (const char *a, const char *b), (a, b), b, b)

#ifdef __GLIBC__
ON_FILE(ssize_t, pwrite64, "pwrite", (int fd, const void *d, size_t n, off64_t o), (fd, d, n, o), fd,
        n)
ON_FILE(ssize_t, pwritev64, "pwritev", (int fd, const struct iovec *v, int n, off64_t o),
        (fd, v, n, o), fd, bytes_of(v, n))
ON_FILE(int, ftruncate64, "ftruncate", (int fd, off64_t n), (fd, n), fd, n)
ON_FILE(int, fallocate64, "fallocate", (int fd, int m, off64_t o, off64_t n), (fd, m, o, n), fd, n)
ON_FILE(ssize_t, sendfile64, "sendfile", (int to, int from, off64_t *o, size_t n), (to, from, o, n),
        to, n)
OPENS(open64, "open", (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD)
OPENS(openat64, "openat", (int folder, const char *path, int flags, ...),
      (folder, path, flags, mode), folder)
ON_PATH(int, creat64, "creat", (const char *path, mode_t m), (path, m), AT_FDCWD, path, -1)
ON_PATH(FILE *, fopen64, "fopen", (const char *path, const char *m), (path, m), AT_FDCWD, path, NULL)
ON_PATH(int, truncate64, "truncate", (const char *path, off64_t n), (path, n), AT_FDCWD, path, -1)
ON_PATH(int, mkstemp64, "mkstemp", (char *path), (path), AT_FDCWD, path, -1)
ON_PATH(int, mkostemp, "mkostemp", (char *path, int f), (path, f), AT_FDCWD, path, -1)
ON_PATH(int, mkostemp64, "mkostemp", (char *path, int f), (path, f), AT_FDCWD, path, -1)
/* Built with checks of its arguments, a program calls these instead. */
int __open_2(const char *, int);
int __open64_2(const char *, int);
int __openat_2(int, const char *, int);
int __openat64_2(int, const char *, int);
ON_PATH(int, __open_2, "open", (const char *path, int f), (path, f), AT_FDCWD, path, -1)
ON_PATH(int, __open64_2, "open", (const char *path, int f), (path, f), AT_FDCWD, path, -1)
ON_PATH(int, __openat_2, "openat", (int d, const char *path, int f), (d, path, f), d, path, -1)
ON_PATH(int, __openat64_2, "openat", (int d, const char *path, int f), (d, path, f), d, path, -1)
#if __GLIBC_PREREQ(2, 33) /* before, these were macros around others */
ON_PATH(int, stat, "stat", (const char *path, struct stat *s), (path, s), AT_FDCWD, path, -1)
ON_PATH(int, lstat, "lstat", (const char *path, struct stat *s), (path, s), AT_FDCWD, path, -1)
ON_PATH(int, fstatat, "fstatat", (int d, const char *path, struct stat *s, int f), (d, path, s, f), d,
        path, -1)
ON_PATH(int, stat64, "stat", (const char *path, struct stat64 *s), (path, s), AT_FDCWD, path, -1)
ON_PATH(int, lstat64, "lstat", (const char *path, struct stat64 *s), (path, s), AT_FDCWD, path, -1)
ON_PATH(int, fstatat64, "fstatat", (int d, const char *path, struct stat64 *s, int f), (d, path, s, f),
        d, path, -1)
#endif
#endif

/* These return the error. */
#define RETURNS_IT(name, as, arguments, passed, fd, path, asked)              \
  int name arguments {                                                        \
    REAL(name);                                                               \
    int found = real passed, before = errno;                                  \
    if (__builtin_expect(found, 0)) report(as, fd, AT_FDCWD, path, asked, found, 0, 0); \
    errno = before;                                                           \
    return found;                                                             \
  }
RETURNS_IT(posix_fallocate, "posix_fallocate", (int fd, off_t o, off_t n), (fd, o, n), fd, 0, n)
#ifdef __GLIBC__
RETURNS_IT(posix_fallocate64, "posix_fallocate", (int fd, off64_t o, off64_t n), (fd, o, n), fd, 0, n)
#endif
RETURNS_IT(posix_spawn, "posix_spawn",
           (pid_t * pid, const char *path, const posix_spawn_file_actions_t *f,
            const posix_spawnattr_t *s, char *const a[], char *const e[]),
           (pid, path, f, s, a, e), -1, path, 0)
RETURNS_IT(posix_spawnp, "posix_spawnp",
           (pid_t * pid, const char *path, const posix_spawn_file_actions_t *f,
            const posix_spawnattr_t *s, char *const a[], char *const e[]),
           (pid, path, f, s, a, e), -1, path, 0)

/* Streams: libc writes them without a call that anybody could stand before. */
#define WRITES(name)                                                                  \
  CALLS_ON(size_t, name, "fwrite", (const void *data, size_t n, size_t count, FILE *file), \
           (data, n, count, file), found < count, FAILED(fileno(file), -1, 0, n * count, 0, 0))
WRITES(fwrite)
WRITES(fwrite_unlocked)
#define ON_STREAM(name, as, arguments, passed, asked)                                 \
  CALLS_ON(int, name, as, arguments, passed, found == EOF && file,                    \
           FAILED(fileno(file), -1, 0, asked, 0, 0))
ON_STREAM(fputs, "fputs", (const char *text, FILE *file), (text, file), strlen(text))
ON_STREAM(fputs_unlocked, "fputs", (const char *text, FILE *file), (text, file), strlen(text))
ON_STREAM(fflush, "fflush", (FILE * file), (file), 0)
ON_STREAM(fflush_unlocked, "fflush", (FILE * file), (file), 0)

int fclose(FILE *file) {
  static const char call_[] = "fclose";
  char where[4096] = "";
  REAL(fclose);
  if (file && (ferror(file) || __fpending(file))) name_of(where, sizeof where, fileno(file));
  int found = real(file), error = errno;
  if (__builtin_expect(found, 0))
    report(call_, -1, AT_FDCWD, where[0] ? where : 0, 0, error, 0, 0);
  errno = error;
  return found;
}

/* What is in memory: libc opens these below /dev/shm by itself. */
static void report_shared(const char *call, const char *before, const char *name, long long asked) {
  char where[512];
  int error = errno;
  while (name && *name == '/') name++;
  snprintf(where, sizeof where, "/dev/shm/%s%s", before, name ? name : "");
  report(call, -1, AT_FDCWD, where, asked, error, 0, 0);
  errno = error;
}

sem_t *sem_open(const char *name, int flags, ...) {
  unsigned value = 0;
  MODE REAL(sem_open);
  if (flags & O_CREAT) {
    va_list more;
    va_start(more, flags);
    (void)va_arg(more, mode_t);
    value = va_arg(more, unsigned);
    va_end(more);
  }
  sem_t *found = real(name, flags, mode, value);
  if (__builtin_expect(found == SEM_FAILED, 0))
    report_shared("sem_open", "sem.", name, sizeof(sem_t));
  return found;
}

CALLS_ON(int, shm_open, "shm_open", (const char *name, int flags, mode_t mode), (name, flags, mode),
         found < 0, report_shared(call_, "", name, 0))

#define MAPS(name, offset)                                                                \
  CALLS_ON(void *, name, "mmap",                                                          \
           (void *address, size_t size, int protection, int flags, int fd, offset at),    \
           (address, size, protection, flags, fd, at), found == MAP_FAILED,               \
           FAILED(fd, -1, 0, size, 0, 0))
MAPS(mmap, off_t)
#ifdef __GLIBC__
MAPS(mmap64, off64_t)
#endif
