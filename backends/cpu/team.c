/* A team of threads for compiled programs: see `threads.py`, whose `Native` calls what stands here by its addresses.

   Threads wait for work together, for all programs and all callers of a process. A program gets those that have none,
   at most as many as it asks for: programs that run at the same time share the threads, and none waits for another.
   Members of a run have numbers from 0, the caller's, and may wait for each other. Who waits looks for a fraction of a
   millisecond, and then sleeps: at once where a member that is waited for was last seen on the same processor, which it
   cannot have while somebody looks. So a run whose members share a processor, as another process has the other ones,
   goes from member to member and loses no time with looking. */

#define _GNU_SOURCE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

/* Nanoseconds for which who waits looks: as long as most kernels take. */
#define LOOKS 150000
/* Members on one processor look all the same once in so many nanoseconds: while two of them could run, the system may
   move one; of those that run in turn it sees one. */
#define LOOKS_AGAIN 3000000
/* Members that one wakes: it takes some microseconds for each, and one that sleeps some tens until it runs. */
#define WAKES 4
#define MOST 256
#define LINE 64

static const int FAULTS[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

typedef struct run Run;

typedef struct {
    _Alignas(LINE) _Atomic(Run *) run; /* what it works on; NULL: nothing */
    int number;                        /* as a member of that */
    _Atomic int sleeps;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
} Worker;

/* A member of a run: the processor that it was last seen on, and the barrier that it has waited at there for longer
   than a moment, by its phase; AWAY: it has not begun, or has ended. */
typedef struct {
    _Alignas(LINE) _Atomic int64_t seen;
} Seat;

#define AWAY -1

/* A run of a program. It stays allocated, for a member that wakes others may be late. */
struct run {
    void (*function)(void *);
    void *table;
    int members;
    Worker *workers[MOST]; /* by their numbers; the caller is none */
    _Alignas(LINE) _Atomic int arrived;
    _Alignas(LINE) _Atomic unsigned phase; /* how often all have arrived: it wraps */
    _Alignas(LINE) _Atomic int left;  /* members that have not ended, beside the caller */
    _Atomic int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t moved; /* the phase, or to its end */
    _Atomic int64_t looks_again; /* when members on one processor look next */
    Run *next; /* of those that are free */
    Seat seats[MOST];
};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER; /* of all that follows */
static Worker *workers[MOST];
static int count;
static Run *free_runs;

static _Thread_local Run *own_run;
static _Thread_local int own_number;
static _Thread_local int own_processor; /* as its seat says */

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The processor that the caller runs on; negative: the system does not say. */
static inline int processor(void)
{
#ifdef __linux__
    return sched_getcpu();
#else
    return -1;
#endif
}

/* Say where the calling member of a run is. */
static void sit(Run *run, int number, unsigned phase)
{
    int on = own_processor = processor();
    int64_t seen = on < 0 ? AWAY : (int64_t)phase << 32 | on;
    atomic_store_explicit(&run->seats[number].seen, seen, memory_order_relaxed);
}

/* Whether a member that does not wait at the barrier of a phase was last seen on the caller's processor. The caller
   waits there. */
static int is_in_the_way(Run *run, int number, unsigned phase, int64_t time)
{
    sit(run, number, phase);
    int on = own_processor;
    for (int i = 0; on >= 0 && i < run->members; i++) {
        int64_t seen = atomic_load_explicit(&run->seats[i].seen, memory_order_relaxed);
        if (i != number && seen != AWAY && (int)(seen & 0x7fffffff) == on && (unsigned)(seen >> 32) != phase) {
            if (time < atomic_load(&run->looks_again))
                return 1;
            atomic_store(&run->looks_again, time + LOOKS_AGAIN);
            return 0;
        }
    }
    return 0;
}

/* Look until a condition holds, for a while, or not at all if it is in vain (at a `time`); whether it holds. */
#define LOOK(condition, in_vain)                                                                                       \
    ({                                                                                                                 \
        int found = 0;                                                                                                 \
        for (int64_t end = 0; !(found = (condition));) {                                                               \
            for (int i = 0; i < 32 && !(condition); i++)                                                               \
                relax();                                                                                               \
            int64_t time = now();                                                                                      \
            if (!end && (in_vain))                                                                                     \
                break;                                                                                                 \
            if (!end)                                                                                                  \
                end = time + LOOKS;                                                                                    \
            else if (time > end)                                                                                       \
                break;                                                                                                 \
        }                                                                                                              \
        found;                                                                                                         \
    })

/* Wait until a condition holds that another thread makes true before it calls `moved`. */
#define WAIT(run, condition, in_vain)                                                                                  \
    if (!LOOK(condition, in_vain)) {                                                                                   \
        pthread_mutex_lock(&(run)->mutex);                                                                             \
        atomic_fetch_add(&(run)->sleepers, 1);                                                                         \
        while (!(condition))                                                                                           \
            pthread_cond_wait(&(run)->moved, &(run)->mutex);                                                           \
        atomic_fetch_sub(&(run)->sleepers, 1);                                                                         \
        pthread_mutex_unlock(&(run)->mutex);                                                                           \
    }

static void moved(Run *run)
{
    if (atomic_load(&run->sleepers)) {
        pthread_mutex_lock(&run->mutex);
        pthread_cond_broadcast(&run->moved);
        pthread_mutex_unlock(&run->mutex);
    }
}

/* Wake some members of a run if they sleep; these wake the next ones. */
static void wake_others(Run *run, int number)
{
    for (int i = WAKES * number + 1; i <= WAKES * (number + 1) && i < run->members; i++) {
        Worker *w = run->workers[i];
        if (atomic_load(&w->sleeps)) {
            pthread_mutex_lock(&w->mutex);
            pthread_cond_signal(&w->wake);
            pthread_mutex_unlock(&w->mutex);
        }
    }
}

static void work(Run *run, int number)
{
    Run *outer_run = own_run;
    int outer_number = own_number;
    own_run = run, own_number = number;
    sit(run, number, atomic_load(&run->phase) - 1);
    wake_others(run, number);
    run->function(run->table);
    own_run = outer_run, own_number = outer_number, own_processor = AWAY;
}

static void leave(Run *run, int number)
{
    atomic_store_explicit(&run->seats[number].seen, AWAY, memory_order_relaxed);
}

static void *worker_main(void *argument)
{
    Worker *w = argument;
    for (int looks = 1;;) {
        if (!looks || !LOOK(atomic_load(&w->run) != NULL, 0)) {
            pthread_mutex_lock(&w->mutex);
            atomic_store(&w->sleeps, 1);
            while (atomic_load(&w->run) == NULL)
                pthread_cond_wait(&w->wake, &w->mutex);
            atomic_store(&w->sleeps, 0);
            pthread_mutex_unlock(&w->mutex);
        }
        Run *run = atomic_load(&w->run);
        work(run, w->number);
        /* The caller goes on as soon as all have ended: at the next barrier nobody waits yet. */
        looks = !is_in_the_way(run, w->number, atomic_load(&run->phase) + 1, now());
        leave(run, w->number);
        atomic_store(&w->run, NULL); /* before the run can end: the next one finds it without work */
        if (atomic_fetch_sub(&run->left, 1) == 1)
            moved(run);
    }
    return NULL;
}

/* Another thread, without work; NULL: there are no more. The guard is held. */
static Worker *started(void)
{
    Worker *w = count < MOST - 1 ? aligned_alloc(LINE, sizeof(Worker)) : NULL;
    if (w == NULL)
        return NULL;
    memset(w, 0, sizeof(Worker));
    pthread_mutex_init(&w->mutex, NULL);
    pthread_cond_init(&w->wake, NULL);
    sigset_t all, before;
    pthread_t thread;
    sigfillset(&all); /* signals are for the threads of the program, but for those of a fault in this one */
    for (size_t i = 0; i < sizeof(FAULTS) / sizeof(*FAULTS); i++)
        sigdelset(&all, FAULTS[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&thread, NULL, worker_main, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        free(w);
        return NULL;
    }
    pthread_detach(thread);
    return workers[count++] = w;
}

static Run *free_run(void)
{
    Run *run = free_runs;
    if (run != NULL) {
        free_runs = run->next;
        return run;
    }
    run = aligned_alloc(LINE, sizeof(Run));
    if (run == NULL)
        return NULL;
    memset(run, 0, sizeof(Run));
    pthread_mutex_init(&run->mutex, NULL);
    pthread_cond_init(&run->moved, NULL);
    for (int i = 0; i < MOST; i++)
        leave(run, i);
    return run;
}

/* Run a function on a table by up to so many members, of whom the caller is one. There are never more threads than the
   largest run has asked for. */
static void run_by_team(void (*function)(void *), void *table, unsigned wanted)
{
    int members = 1, most = wanted < MOST ? (int)wanted : MOST;
    pthread_mutex_lock(&guard);
    Run *run = free_run();
    if (run == NULL) { /* no memory: alone, as members that are asked for find none */
        pthread_mutex_unlock(&guard);
        Run *outer = own_run;
        own_run = NULL;
        function(table);
        own_run = outer;
        return;
    }
    run->function = function, run->table = table;
    for (int i = 0; members < most && (i < count || count < most - 1); i++) {
        Worker *w = i < count ? workers[i] : started();
        if (w == NULL)
            break;
        if (atomic_load(&w->run) == NULL)
            run->workers[members++] = w;
    }
    run->members = members;
    atomic_store(&run->arrived, 0);
    atomic_store(&run->left, members - 1);
    for (int i = members - 1; i > 0; i--) { /* the last one first: who has begun wakes members with larger numbers */
        run->workers[i]->number = i;
        atomic_store(&run->workers[i]->run, run);
    }
    pthread_mutex_unlock(&guard);
    work(run, 0);
    WAIT(run, atomic_load(&run->left) == 0, is_in_the_way(run, 0, atomic_load(&run->phase), time));
    leave(run, 0);
    own_processor = AWAY; /* it is not where the seat in an outer run says */
    pthread_mutex_lock(&guard);
    run->next = free_runs;
    free_runs = run;
    pthread_mutex_unlock(&guard);
}

/* Wait until all members of the own run have come here. */
static void barrier(void)
{
    Run *run = own_run;
    if (run == NULL || run->members == 1)
        return;
    unsigned phase = atomic_load(&run->phase);
    if (own_processor != processor())
        sit(run, own_number, phase - 1);
    if (atomic_fetch_add(&run->arrived, 1) + 1 == run->members) {
        atomic_store(&run->arrived, 0);
        atomic_store(&run->phase, phase + 1);
        moved(run);
    } else {
        WAIT(run, atomic_load(&run->phase) != phase, is_in_the_way(run, own_number, phase, time));
    }
}

static int member(void)
{
    return own_run == NULL ? 0 : own_number;
}

static int members(void)
{
    return own_run == NULL ? 1 : own_run->members;
}

/* A child process has none of these threads; what they held is never let go. */
static void forget(void)
{
    pthread_mutex_init(&guard, NULL);
    count = 0;
    free_runs = NULL;
    own_run = NULL;
}

static PyObject *functions(PyObject *self, PyObject *nothing)
{
    return Py_BuildValue(
        "(KKKK)", (unsigned long long)(uintptr_t)run_by_team, (unsigned long long)(uintptr_t)barrier,
        (unsigned long long)(uintptr_t)member, (unsigned long long)(uintptr_t)members);
}

static PyMethodDef methods[] = {
    {"functions", functions, METH_NOARGS,
     "Addresses: void run(function, table, members), void barrier(), int member(), int members()."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_team", NULL, -1, methods};

PyMODINIT_FUNC PyInit__team(void)
{
    if (pthread_atfork(NULL, NULL, forget))
        return PyErr_NoMemory();
    return PyModule_Create(&module);
}
